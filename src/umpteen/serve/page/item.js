// The text on the screen, and its labels with checkboxes.

import { announce, find, findAll, make, on } from "./dom.js";
import { findLabel } from "./finder.js";
import { explainer, onLook, paint, rowContent } from "./labels.js";
import { lookAhead, session, suggestions } from "./session.js";
import { follow, isConfident } from "./server.js";

const list = find("#review-labels");
const why = explainer(({ words }) => paint(find("#item-text"), shown.text, words));
let shown = null; // null while the model is asked

const boxes = (which = "") => findAll(`#review-labels input${which}`);

export function startItem() {
	on(list, "change", ({ target }) => touched(target));
	onLook(list, (label) => shown && why.look(label));
	for (const change of ["info", "threshold"]) follow(change, () => { if (shown && !shown.isTouched) draw(); });
}

/** Show a text with its suggestions; `before` is what was decided about it earlier. */
export async function showItem(index, before) {
	const { text, labels: given } = session.queue.items[index];
	shown = null;
	why.about(text);
	paint(find("#item-text"), text);
	list.replaceChildren(make("li.quiet", "Asking the model …"));
	try {
		const found = await suggestions(index);
		if (session.queue.current !== index) return;
		shown = { ...found, text, chosen: before?.labels ?? (given?.length ? given : undefined), fresh: before?.fresh ?? [], since: Date.now(), isTouched: before };
		draw();
		lookAhead();
	} catch ({ message }) {
		list.replaceChildren(make("li.quiet", `${message} Press Enter to try again.`));
	}
}

/** Check what was decided or what the file gives, or else what is confident. */
function draw() {
	const { labels, fresh, chosen: names = labels.filter(isConfident).map(({ label }) => label) } = shown;
	list.replaceChildren();
	for (const one of labels) add(one, names.includes(one.label));
	for (const label of names) if (!rowOf(label)) add({ label, note: fresh.includes(label) ? "new" : "added" }, true);
}

const rowOf = (label) => boxes().find(({ value }) => value === label);

function add(one, checked) {
	const number = list.childElementCount + 1;
	const box = make("input", { type: "checkbox", value: one.label, checked });
	const key = make("kbd", { ariaHidden: "true" }, number < 10 ? `${number}` : "");
	const row = make("label.row", { "data-label": one.label }, box, key, ...rowContent(one));
	list.append(make(one.note || isConfident(one) ? "li" : "li.unsure", row));
}

function touched({ value, checked }) {
	shown.isTouched = true;
	announce(`${value} ${checked ? "checked" : "unchecked"}`);
}

export const toggleNumber = (number) => boxes()[number - 1]?.click();

export async function addLabel(isForNew) {
	if (!shown) return;
	const own = [...session.queue.decisions, shown].flatMap(({ fresh }) => fresh);
	const taken = await findLabel([...new Set(own)], isForNew);
	find("#item").focus();
	if (!taken) return;
	if (taken.isNew) shown.fresh = [...shown.fresh, taken.label];
	if (!rowOf(taken.label)) add({ ...taken, note: taken.isNew ? "new" : "added" });
	rowOf(taken.label).checked = true;
	touched(rowOf(taken.label));
}

export function decision() {
	if (!shown) return null;
	const { fresh, version, since } = shown;
	const suggested = shown.labels.filter(isConfident).map(({ label }) => label);
	return { labels: boxes(":checked").map(({ value }) => value), suggested, fresh, version, seconds: (Date.now() - since) / 1000 };
}
