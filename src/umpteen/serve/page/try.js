// Try: labels of a text as it is typed, and why.

import { announce, attempt, find, findAll, make, on, percent, several, write } from "./dom.js";
import { explainer, onLook, paint, reasons, rowContent } from "./labels.js";
import { ask, follow, isConfident, path } from "./server.js";
import { thresholdSlider } from "./threshold.js";

const PATIENCE = 250; // milliseconds after the last key
const MOST_LABELS = 10;
const why = explainer(showReasons);
let found = [];
let looked = null;
let timer;

export function startTry() {
	thresholdSlider(find("#try-threshold"));
	on(find("#text"), "input", typed);
	onLook(find("#try-labels"), look);
	find("#text").value ||= sessionStorage.getItem("umpteen.text");
	follow("info", typed);
	follow("threshold", draw);
}

function typed() {
	const text = find("#text").value;
	sessionStorage.setItem("umpteen.text", text);
	paint(find("#mirror"), `${text}\n`);
	why.about(text);
	clearTimeout(timer);
	timer = setTimeout(() => attempt(() => suggest(text)), PATIENCE);
}

async function suggest(text) {
	const isEmpty = !text.trim();
	const labels = isEmpty ? [] : (await ask(path("/suggest"), { text, k: MOST_LABELS })).results[0].labels;
	if (text !== find("#text").value) return;
	found = labels;
	write("#try-empty", isEmpty ? "Labels appear here." : "The model knows no word of this text.");
	find("#try-empty").hidden = labels.length > 0;
	if (!labels.length) find("#why").hidden = true;
	draw();
	const names = labels.filter(isConfident).map(({ label, name, probability }) => `${name ?? label} ${percent(probability)}`);
	if (!isEmpty) announce(`${several(names.length, "confident label")}. ${names.join(", ")}`);
	if (labels.length) look((labels.find(({ label }) => label === looked) ?? labels[0]).label);
}

function draw() {
	write("#try-labels", ...found.map((one) => {
		const row = make("button.row", { "data-label": one.label }, ...rowContent(one));
		return make(isConfident(one) ? "li" : "li.unsure", row);
	}));
	mark();
}

function mark() {
	for (const row of findAll("#try-labels button")) row.ariaPressed = row.dataset.label === looked;
}

function look(label) {
	looked = label;
	mark();
	why.look(label);
}

function showReasons(explanation) {
	paint(find("#mirror"), `${find("#text").value}\n`, explanation.words);
	write("#why", ...reasons(explanation));
	find("#why").hidden = false;
}
