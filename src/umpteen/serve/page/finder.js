// A dialog that finds a label among all, or makes a new one.

import { closed, count, find, make, on, pause, several, write } from "./dom.js";
import { ask, path } from "./server.js";

const PATIENCE = 60; // milliseconds after the last key
const SHOWN = 8;
const dialog = find("#finder");
const input = find("#finder-text");
const list = find("#finder-list");
let options = [];
let active = 0;
let isForNew = false;
let own = []; // new labels that the server may not know yet
let turn = 0;
let looking = null;

const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

/** Return the label that the person chooses, `{label, isNew}`, or null. */
export async function findLabel(newLabels, wantsNew) {
	[own, isForNew] = [newLabels, wantsNew];
	write("#finder-title", wantsNew ? "New label" : "Search all labels");
	input.value = "";
	const closing = closed(dialog);
	looking = look();
	return (await closing) ? options[active] : null;
}

export function startFinder() {
	on(input, "input", () => { looking = look(); });
	on(input, "keydown", keyPressed);
	on(list, "click", ({ target }) => take([...list.children].indexOf(target.closest("li"))));
}

async function look() {
	const mine = ++turn;
	const wanted = input.value.trim();
	if (wanted) await pause(PATIENCE);
	if (mine !== turn) return;
	if (!wanted && isForNew) {
		show([], "Type a name.");
		return;
	}
	const query = new URLSearchParams({ q: wanted, limit: SHOWN });
	const found = await ask(path(`/labels?${query}`)).catch(({ message }) => ({ labels: [], message }));
	if (mine === turn) show(choices(wanted, found.labels), found.message ?? `${count(found.n_matches)} found`);
}

/** Return the choices: known labels, and a new one unless it exists. */
function choices(wanted, labels) {
	const isKnown = (name) => labels.some(({ label }) => label === name);
	const mine = own.filter((name) => !isKnown(name) && plain(name).includes(plain(wanted)));
	const all = [...mine.map((label) => ({ label })), ...labels];
	if (!wanted || all.some(({ label, name }) => [label, name].includes(wanted))) return all;
	const fresh = { label: wanted, isNew: true };
	const isAlike = all.some(({ label, name }) => plain(name ?? label) === plain(wanted));
	return isForNew && !isAlike ? [fresh, ...all] : [...all, fresh];
}

function show(found, note) {
	options = found;
	write("#finder-note", note);
	list.replaceChildren(...found.map(({ label, name, count: n, isNew }, i) => make("li", { id: `option-${i}`, role: "option" },
		isNew ? make("b", `Add “${label}” as a new label`) : make("span", name ?? label),
		make("small", isNew ? "" : n === undefined ? "new" : several(n, "text")))));
	activate(0);
}

function activate(at) {
	active = Math.max(0, Math.min(at, options.length - 1));
	[...list.children].forEach((row, i) => { row.ariaSelected = i === active; });
	input.setAttribute("aria-activedescendant", options.length ? `option-${active}` : "");
	list.children[active]?.scrollIntoView({ block: "nearest" });
}

async function keyPressed(event) {
	const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
	if (!step && event.key !== "Enter") return;
	event.preventDefault();
	if (step) {
		activate(active + step);
		return;
	}
	await looking; // what was typed last may not have been found yet
	take(active);
}

function take(at) {
	if (!options[at]) return;
	active = at;
	dialog.close("taken");
}
