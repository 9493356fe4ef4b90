// Model: what it is, how good it is, what it has learned; and the way back.

import { lineChart } from "./chart.js";
import { announce, attempt, count, isSure, make, on, percent, warn, write } from "./dom.js";
import { ask, follow, path, refresh, state } from "./server.js";

export function startModel() {
	follow("info", () => {
		const { info } = state;
		write("#cards", about(info), quality(info.report), learning(info.learning), versions(info), mostCorrected(info.learning));
	});
}

const card = (title, ...content) => make("section.card", make("h2", title), ...content);

function button(text, action) {
	const made = make("button", text);
	on(made, "click", action);
	return made;
}

const act = (action, body) => attempt(async () => {
	const { reason, running } = await ask(path(action), body);
	await refresh();
	if (reason) warn(`Not applied: ${reason}`);
	else announce(running ? "It goes on in the background." : "Done.");
});

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

function about({ name, n_labels, n_samples, classifier, language, trained, version, calibrated }) {
	return card(name, facts({
		Labels: count(n_labels), "Training texts": n_samples && count(n_samples), Classifier: classifier, Language: language,
		Trained: moment(trained), Version: version, Probabilities: calibrated ? "calibrated" : "not calibrated",
	}));
}

function quality(report) {
	if (!report) return card("Quality", make("p.quiet", "This model has no report."));
	const tiles = Object.keys(report).filter((name) => name.includes("@")).map((name) => make("li", make("b", percent(report[name])), make("span", name)));
	return card("Quality on texts that it had not seen", make("ul.tiles", ...tiles));
}

function learning({ corrections, pending, applied, refused, curve }) {
	const apply = button("Apply waiting corrections now", () => act("/apply", {}));
	apply.disabled = !pending;
	return card("Learning from corrections",
		facts({ Corrections: count(corrections), Applied: count(applied), Waiting: count(pending), Refused: count(refused) }),
		refused ? make("p.note", "Refused corrections made the model worse on texts that it had not seen: they are kept, but not applied.") : "",
		curve.length ? learningCurve(curve) : make("p.quiet", "Nothing is learned from corrections yet."),
		state.model.learns ? make("p.actions", apply) : "");
}

function learningCurve(curve) {
	const scores = curve.map(({ score }) => score);
	const limits = {
		left: curve[0].corrections, right: curve.at(-1).corrections,
		low: Math.min(...scores) - 0.01, high: Math.max(...scores) + 0.01,
	};
	const line = (name, isShown) => {
		const dots = curve.filter(isShown).map(({ corrections, score }) => [corrections, score]);
		return { name, points: name === "refused" ? [] : dots, dots };
	};
	const title = "Score after each update, by the number of corrections. Yellow ones were refused.";
	const chart = lineChart([line("precision", ({ applied }) => applied), line("refused", ({ applied }) => !applied)], title, limits);
	const share = (value) => make("span", `${(100 * value).toFixed(1)}\u00a0%`);
	return make("figure", make("div.area", make("div", share(limits.high), share(limits.low)), chart), make("figcaption", title));
}

function mostCorrected({ most_corrected: labels }) {
	if (!labels.length) return "";
	const head = make("tr", ...["Label", "Added", "Removed"].map((name) => make("th", { scope: "col" }, name)));
	const rows = labels.map(({ label, name, added, removed }) => (
		make("tr", make("th", { scope: "row" }, name ?? label), make("td", count(added)), make("td", count(removed)))
	));
	return card("Labels with most corrections", make("table", make("thead", head), make("tbody", ...rows)));
}

function versions({ versions: known }) {
	const rows = known.map(({ version, time, current }) => {
		const text = `Version ${version} answers from now on. Corrections and all versions are kept.`;
		const action = current ? make("span.tag", "in use") : sureButton("Roll back", text, "/rollback", { version });
		return make("li", make("span", `Version ${version}`), make("small", moment(time)), action);
	});
	const reload = sureButton("Reload from its folder", "The server reads the model again. No request fails meanwhile.", "/reload", {});
	return card("Versions", make("ul.versions", ...rows), make("p.actions", reload));
}
