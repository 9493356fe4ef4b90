// Review: one text at a time, by keyboard or by touch.

import { announce, attempt, find, findAll, isSure, on, several, write } from "./dom.js";
import { readFiles } from "./files.js";
import { addLabel, decision, showItem, startItem, toggleNumber } from "./item.js";
import { download, showProgress, showSent } from "./progress.js";
import { Queue } from "./queue.js";
import { begin, send, session, sort } from "./session.js";
import { dropDecision, forget, keepDecision, keepItems, keepOrder, kept } from "./store.js";
import { thresholdSlider } from "./threshold.js";

const KEYS = { u: undo, s: skip, "/": () => addLabel(false), n: () => addLabel(true) };
let isBusy = false;

export function startReview() {
	thresholdSlider(find("#review-threshold"));
	startItem();
	startFiles();
	const actions = { accept, undo, skip, clear, download, search: KEYS["/"], new: KEYS.n };
	for (const [id, action] of Object.entries(actions)) on(find(`#${id}`), "click", () => alone(action));
	on(find("#uncertain"), "change", () => attempt(rank));
	on(document, "keydown", keyPressed);
	on(document, "visibilitychange", () => { if (document.hidden) send(showSent, 0, true); });
	kept().then((found) => open(new Queue(...found)));
}

async function open(queue) {
	begin(queue);
	await show();
	send(showSent, 0);
}

/** Ignore what is pressed while the page is busy with what was pressed before. */
async function alone(action) {
	if (isBusy) return;
	isBusy = true;
	await attempt(action);
	isBusy = false;
}

function startFiles() {
	for (const input of findAll("input[type=file]")) {
		on(input, "change", async () => {
			await attempt(() => addFiles([...input.files]));
			input.value = ""; // the same file may be chosen again
		});
	}
	for (const button of findAll("[data-opens]")) on(button, "click", () => find(button.dataset.opens).click());
	on(document, "dragover", (event) => event.preventDefault());
	on(document, "drop", (event) => {
		event.preventDefault();
		location.hash = "review";
		attempt(() => addFiles([...event.dataTransfer.files]));
	});
}

async function addFiles(files) {
	const { queue } = session;
	queue.add(await readFiles(files));
	await keepItems(queue);
	await keepOrder(queue);
	if (find("#uncertain").checked) await rank();
	else await next();
	announce(several(queue.waiting.length, "text"));
}

/** Show the first text that waits; `before` is what was decided about it earlier. */
async function show(before) {
	const { items, current } = session.queue;
	find("#start").hidden = items.length > 0;
	find("#work").hidden = !items.length;
	find("#work").classList.toggle("done", current === undefined);
	showProgress();
	if (current !== undefined) await showItem(current, before);
}

async function next(before) {
	await show(before);
	scrollTo(0, 0);
	find(session.queue.current === undefined ? "#finished" : "#item").focus({ preventScroll: true });
}

async function accept() {
	const made = decision();
	if (made) {
		await keepDecision(session.queue.decide(made));
		send(showSent);
	}
	await next();
}

async function undo() {
	const last = session.queue.undo();
	if (!last) return;
	await dropDecision(last);
	await next(last);
}

async function skip() {
	session.queue.skip();
	await keepOrder(session.queue);
	await next();
}

async function rank() {
	const tell = (n_asked) => write("#sent", `Asking the model: ${n_asked} of ${several(session.queue.waiting.length, "text")}.`);
	await sort(find("#uncertain").checked, tell);
	await next();
}

async function clear() {
	const text = `This deletes all texts and ${several(session.queue.decisions.length, "decision")} from this browser.`;
	if (!(await isSure("Clear this review?", text, "Clear"))) return;
	await forget();
	await open(new Queue());
}

/** Act on a key, unless the person types, or a modifier or a dialog means something else. */
function keyPressed(event) {
	const { key, target, ctrlKey, altKey, metaKey, repeat } = event;
	const isElsewhere = find("#view-review").hidden || find("#work").hidden || find("dialog[open]");
	if (isElsewhere || ctrlKey || altKey || metaKey || repeat || target.matches("select, [type=range]")) return;
	const action = key === "Enter" ? !target.matches("button, a") && accept : single(key);
	if (!action) return;
	event.preventDefault();
	alone(action);
}

function single(key) {
	if (!find("#shortcuts").checked) return null;
	return /^[1-9]$/.test(key) ? () => toggleNumber(Number(key)) : KEYS[key];
}
