// The review: its queue, its suggestions, and what was sent to the server.

import { Queue, uncertainty } from "./queue.js";
import { ask, path, state } from "./server.js";
import { keepDecision, keepOrder } from "./store.js";

const AT_ONCE = 50;
const MOST_LABELS = 9; // as many as there are keys
const PATIENCE = 6000; // milliseconds that the last decision waits, so that it can be undone
let isSending = false;
let timer = 0;
let ranking = 0;

export const session = {};
begin(new Queue());

export function begin(queue) {
	Object.assign(session, { queue, known: new Map(), problem: null });
}

export async function suggestions(index) {
	if (!session.known.has(index)) await suggest([index]);
	return session.known.get(index);
}

/** Ask for the next text, also if it is known: the model may have learned since. */
export function lookAhead() {
	suggest(session.queue.waiting.slice(1, 2)).catch(() => {}); // asked again when it is shown
}

async function suggest(indexes) {
	if (!indexes.length) return;
	const texts = indexes.map((index) => session.queue.items[index].text);
	const { version, results } = await ask(path("/suggest"), { texts, k: MOST_LABELS });
	results.forEach(({ labels }, i) => session.known.set(indexes[i], { labels, version }));
}

/** Put the least certain texts first, or all in the order of their files. */
export async function sort(isByUncertainty, tell) {
	const turn = ++ranking;
	const { queue, known } = session;
	const waiting = isByUncertainty ? [...queue.waiting] : [];
	for (let start = 0; start < waiting.length; start += AT_ONCE) {
		tell(start);
		await suggest(waiting.slice(start, start + AT_ONCE));
		if (turn !== ranking) return;
	}
	queue.sort(new Map(waiting.map((index) => [index, uncertainty(known.get(index).labels)])));
	await keepOrder(queue);
}

export const unsent = () => session.queue.decisions.filter(({ sent }) => !sent);

/** Send all but the newest `n_held` decisions, and those later; `tell` when the server answers. */
export async function send(tell, n_held = 1, isLeaving = false) {
	clearTimeout(timer);
	if (!state.model.learns || (isSending && !isLeaving)) return;
	const waiting = unsent();
	const batch = waiting.slice(0, Math.min(AT_ONCE, waiting.length - n_held));
	isSending = true;
	if (batch.length) await post(batch, isLeaving);
	isSending = false;
	tell();
	if (unsent().length) timer = setTimeout(() => send(tell, 0), PATIENCE);
}

async function post(batch, isLeaving) {
	const { queue } = session;
	const items = batch.map(({ index, labels, suggested }) => {
		const { id, text } = queue.items[index];
		return { id, text, labels, suggested };
	});
	try {
		await ask(path("/learn"), { items }, isLeaving);
		session.problem = null;
	} catch (problem) {
		session.problem = problem.message;
		return;
	}
	for (const decision of batch) {
		decision.sent = true;
		// One that was undone while it was on its way is not kept again.
		if (queue.decisions.includes(decision)) await keepDecision(decision);
	}
}

/** Return all decisions as JSON Lines, which `umpteen fit` reads. */
export function decisionLines() {
	const { items, decisions } = session.queue;
	return decisions.map(({ index, labels, suggested, version, time }) => {
		const { id, text } = items[index];
		return `${JSON.stringify({ id, text, labels, suggested, version, time: new Date(time).toISOString() })}\n`;
	}).join("");
}
