// The texts to review and the decisions.

const LAST = 20; // decisions that speed and agreement are about
const LONGEST = 300; // seconds: a pause for coffee says nothing about speed

export class Queue {
	/** `order` has all items, `decisions` come in the order in which they were made. */
	constructor(items = [], order = [...items.keys()], decisions = []) {
		Object.assign(this, { items, order, decisions });
		const done = new Set(decisions.map(({ index }) => index));
		this.waiting = order.filter((index) => !done.has(index));
	}

	get current() {
		return this.waiting[0];
	}

	add(items) {
		const key = ({ id, text }) => JSON.stringify([id, text]);
		const known = new Set(this.items.map(key));
		for (const item of items) {
			if (known.has(key(item))) continue;
			known.add(key(item));
			const index = this.items.push(item) - 1;
			this.order.push(index);
			this.waiting.push(index);
		}
	}

	decide(decision) {
		const seconds = Math.min(decision.seconds, LONGEST);
		const made = { ...decision, seconds, index: this.waiting.shift(), time: Date.now(), sent: false };
		this.decisions.push(made);
		return made;
	}

	undo() {
		const last = this.decisions.pop();
		if (last) this.waiting.unshift(last.index);
		return last;
	}

	skip() {
		const index = this.waiting.shift();
		if (index === undefined) return;
		this.waiting.push(index);
		this.order = [...this.order.filter((one) => one !== index), index];
	}

	/** Put texts with the highest weight first, else in the order of the files. */
	sort(weights) {
		const weight = (index) => weights.get(index) ?? 0;
		for (const list of [this.order, this.waiting]) list.sort((one, two) => weight(two) - weight(one) || one - two);
	}

	textsPerHour() {
		return Math.round(3600 / mean(this.decisions.slice(-LAST).map(({ seconds }) => seconds)));
	}

	/** Return the agreement with the model after each decision, as a mean of the last ones. */
	agreement() {
		const each = this.decisions.map(agreement);
		return each.map((_, i) => mean(each.slice(Math.max(0, i + 1 - LAST), i + 1)));
	}
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** Return the share of all labels, chosen or suggested, that are both (Jaccard); 1 without any. */
export function agreement({ labels, suggested }) {
	const both = labels.filter((label) => suggested.includes(label)).length;
	return both / (labels.length + suggested.length - both) || Number(!labels.length && !suggested.length);
}

/** Return the variance of the number of right labels. */
export function uncertainty(labels) {
	return labels.reduce((sum, { probability }) => sum + probability * (1 - probability), 0);
}
