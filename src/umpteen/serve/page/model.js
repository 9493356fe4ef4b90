// Model: what it is, how good it is, what it has learned.

import { lineChart } from "./chart.js";
import { announce, attempt, count, find, isSure, make, on, percent, write } from "./dom.js";
import { ask, follow, path, refresh, state } from "./server.js";

const PATIENCE = 2000; // milliseconds until the next look at what is learned
let shown = "";

export function startModel() {
	follow("info", () => {
		const { info } = state;
		if (info.learning?.running) setTimeout(() => attempt(refresh), PATIENCE);
		if (JSON.stringify(info) === shown) return; // drawn again, a button would lose the focus
		shown = JSON.stringify(info);
		write("#cards", about(info), quality(info.report), learning(info.learning), versions(info), mostCorrected(info.learning?.most_corrected));
	});
}

const card = (title, ...content) => make("section.card", make("h2", title), ...content);

function button(text, action) {
	const made = make("button", text);
	on(made, "click", action);
	return made;
}

async function act(action, body) {
	if (await attempt(() => ask(path(action), body))) announce("Done.");
	shown = "";
	await attempt(refresh);
	find("#cards").focus();
}

function sureButton(name, text, action, body) {
	return button(name, async () => {
		if (await isSure(`${name}?`, text, name)) act(action, body);
	});
}

const moment = (time) => time && new Date(time).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

function facts(pairs) {
	const known = Object.entries(pairs).filter(([, value]) => value !== null && value !== undefined);
	return make("dl.facts", ...known.map(([name, value]) => make("div", make("dt", name), make("dd", value))));
}

function about({ name, n_labels, n_samples, classifier, language, trained, version }) {
	return card(name, facts({
		Labels: count(n_labels), "Training texts": n_samples && count(n_samples), Classifier: classifier, Language: language,
		Trained: moment(trained), Version: version,
	}));
}

function quality(report) {
	if (!report) return card("Quality", make("p.quiet", "This model has no validation split."));
	const tiles = Object.keys(report).filter((name) => name.includes("@")).map((name) => make("li", make("b", percent(report[name])), make("span", name)));
	return card("Quality on the validation split", make("ul.tiles", ...tiles));
}

function learning(known) {
	const title = "Learning from corrections";
	if (!known) return card(title, make("p.quiet", "This server does not accept corrections."));
	const { corrections, pending, applied, refused, running, curve, damaged } = known;
	const apply = button(running ? "Learning …" : "Apply pending corrections now", () => {
		apply.disabled = true;
		act("/apply", {});
	});
	apply.disabled = running || !pending;
	const reason = curve.at(-1)?.reason;
	return card(title,
		facts({ Corrections: count(corrections), Applied: count(applied), Pending: count(pending), Refused: count(refused) }),
		damaged.length ? make("p.note", `Damaged and not used: version ${damaged.join(", ")}`) : "",
		reason ? make("p.note", `The last corrections were recorded but not applied: ${reason}`) : "",
		learningCurve(curve.filter(({ score }) => score !== null)), make("p.actions", apply));
}

/** Grey is the model before each update, on the same texts. */
function learningCurve(curve) {
	if (!curve.length) return make("p.quiet", "There are no scores yet.");
	const points = (key, isWanted) => curve.filter(isWanted).map((one) => [one.corrections, one[key]]);
	const after = points("score", ({ applied }) => applied);
	const lines = [
		{ name: "recall", points: points("before", () => true) },
		{ name: "precision", points: after, dots: after },
		{ name: "refused", points: [], dots: points("score", ({ applied }) => !applied) },
	];
	const scores = curve.flatMap(({ score, before }) => [score, before]);
	const [low, high] = [Math.min(...scores) - 0.01, Math.max(...scores) + 0.01];
	const title = "nDCG@5 on texts set aside for checking, after each update and before it (grey). Yellow: refused updates.";
	const chart = lineChart(lines, title, { left: curve[0].corrections, right: curve.at(-1).corrections, low, high });
	const limits = [high, low].map((value) => make("span", `${(100 * value).toFixed(1)}\u00a0%`));
	return make("figure", make("div.area", make("div", ...limits), chart), make("figcaption", title));
}

function mostCorrected(labels) {
	if (!labels?.length) return "";
	const head = make("tr", ...["Label", "Added", "Removed"].map((name) => make("th", { scope: "col" }, name)));
	const rows = labels.map(({ label, name, added, removed }) => (
		make("tr", make("th", { scope: "row" }, name ?? label), make("td", count(added)), make("td", count(removed)))
	));
	return card("Labels with the most corrections", make("table", make("thead", head), make("tbody", ...rows)));
}

function versions({ versions: known }) {
	const rows = known.map(({ version, time, current }) => {
		const text = `The server will use version ${version}. Later corrections are not learned again.`;
		const action = current ? make("span.tag", "in use") : sureButton("Roll back", text, "/rollback", { version });
		return make("li", make("span", `Version ${version}`), make("small", moment(time)), action);
	});
	const reload = sureButton("Reload from its folder", "If the model in its folder has changed, the server will use it.", "/reload", {});
	return card("Versions", make("ul.versions", ...rows), make("p.actions", reload));
}
