// How far a review is, how fast, and how often person and model agree.

import { lineChart } from "./chart.js";
import { count, find, make, percent, several, write } from "./dom.js";
import { decisionLines, session, unsent } from "./session.js";
import { state } from "./server.js";

export function showProgress() {
	const { queue } = session;
	const [n_done, n_all] = [queue.decisions.length, queue.items.length];
	const agreement = queue.agreement();
	const agreed = n_done ? percent(agreement.at(-1)) : "–";
	find("#done").style.width = `${(100 * n_done) / n_all}%`;
	write("#figures",
		figure("Reviewed", `${count(n_done)} of ${count(n_all)}`),
		figure("Texts per hour", n_done ? count(queue.textsPerHour()) : "–"),
		figure("Agreement", agreed),
		n_done > 1 ? spark(agreement) : "");
	write("#summary", `${several(n_done, "decision")}. You and the model agree on ${agreed} of the labels.`);
	write("#item-caption", `Text ${count(n_done + 1)} of ${count(n_all)}`);
	find("#undo").disabled = find("#download").disabled = !n_done;
	find("#skip").disabled = queue.waiting.length < 2;
	showSent();
}

const figure = (name, value) => make("div", make("dt", name), make("dd", value));

function spark(agreement) {
	const points = agreement.map((value, i) => [i, value]);
	return make("div.spark", lineChart([{ name: "precision", points }], "Agreement over time", { right: points.length - 1 }));
}

export function showSent() {
	const n_unsent = unsent().length;
	const n_sent = session.queue.decisions.length - n_unsent;
	const sent = `${session.problem ?? ""} ${several(n_sent, "decision")} sent, ${n_unsent} waiting in this browser.`;
	write("#sent", state.model.learns ? sent : "This model does not learn: download your decisions.");
}

export function download() {
	const href = URL.createObjectURL(new Blob([decisionLines()], { type: "application/x-ndjson" }));
	make("a", { href, download: `${state.model.name}-decisions.jsonl` }).click();
	setTimeout(() => URL.revokeObjectURL(href), 60000);
}
