// Rows of labels, and why a text gets a label: words marked by what they add, texts like this one.

import { make, on, pause, percent } from "./dom.js";
import { ask, path } from "./server.js";

const PATIENCE = 70; // milliseconds that the cursor stays on a label
const FAINTEST = 0.1; // of the strongest word
const MOST_WORDS = 10;

/** Return what a row shows: name, bar and probability, or a note instead. */
export function rowContent({ label, name, probability, note }) {
	const bar = make("span.bar", make("span"));
	bar.firstChild.style.width = `${100 * (probability ?? 0)}%`;
	const shown = make("span.name", name ?? label, { title: label });
	return [shown, note ? "" : bar, make("span.number", note ?? percent(probability))];
}

/** Call `look(label)` when the cursor or the focus comes to a row. */
export function onLook(list, look) {
	const seen = ({ target }) => {
		const row = target.closest("[data-label]");
		if (row) look(row.dataset.label);
	};
	for (const event of ["pointerover", "focusin", "click"]) on(list, event, seen);
}

/** Return an object that explains labels of a text; `show` gets the last one that is asked for. */
export function explainer(show) {
	let text, known, turn = 0;
	return {
		about(next) {
			[text, known] = [next, new Map()];
			turn++;
		},
		async look(label) {
			const mine = ++turn;
			if (!known.has(label)) await pause(PATIENCE);
			if (mine !== turn) return;
			if (!known.has(label)) known.set(label, ask(path("/explain"), { text, label }).catch(() => {}));
			const explanation = await known.get(label);
			if (mine === turn && explanation) show(explanation);
		},
	};
}

function markClass(total, strongest) {
	const level = Math.min(3, 1 + Math.floor((3 * Math.abs(total)) / strongest));
	return `${total < 0 ? "against" : "for"}${level}`;
}

/** Put a text into an element, its words marked. Places count code points, as Python does. */
export function paint(target, text, words = []) {
	const points = Array.from(text);
	const strongest = words.reduce((most, { total }) => Math.max(most, Math.abs(total)), 0);
	const marked = words.filter(({ total }) => Math.abs(total) >= FAINTEST * strongest);
	let end = 0;
	target.replaceChildren();
	for (const word of marked) {
		const between = points.slice(end, word.start).join("");
		const content = points.slice(word.start, word.end).join("");
		const mark = make(`mark.${markClass(word.total, strongest)}`, content);
		const last = target.lastChild;
		if (last?.className === mark.className && !/[\p{L}\p{N}]/u.test(between)) last.append(between + content);
		else target.append(between, mark);
		end = word.end;
	}
	target.append(points.slice(end).join(""));
}

export function reasons({ label, name, probability, words, other, named, nearest }) {
	const rest = other.filter(({ what }) => what !== "bias").map(({ what, contribution }) => [what, contribution]);
	const totals = new Map([...words.map(({ word, total }) => [word, total]), ...rest]);
	const title = make("h2", "Why ", make("b", name ?? label), ` at ${percent(probability)}?`);
	const found = [title, chips([...totals])];
	if (named) found.push(make("p.quiet", "The text contains the name of this label."));
	if (nearest.length) found.push(make("h3.caption", "Similar training texts"), make("ul.nearest", ...nearest.map(near)));
	return found;
}

function chips(totals) {
	if (!totals.length) return make("p.quiet", "No word of this text counts for or against it.");
	const size = ([, total]) => Math.abs(total);
	const sorted = totals.sort((one, two) => size(two) - size(one)).slice(0, MOST_WORDS);
	return make("ul.chips", { ariaLabel: "Contribution of each word" }, ...sorted.map(([word, total]) => {
		const value = `${total < 0 ? "−" : "+"}${Math.abs(total).toFixed(2)}`;
		return make(`li.${markClass(total, size(sorted[0]))}`, `${word} `, make("small", value));
	}));
}

function near({ text, labels, similarity }) {
	const short = text.length > 280 ? `${text.slice(0, 280)} …` : text;
	const tags = labels.map((label) => make("span.tag", label));
	return make("li", make("p", short), make("p.tags", ...tags, make("span", `${percent(similarity)} similar`)));
}
