// What this browser keeps of a review: texts, their order, every decision.

import { warn } from "./dom.js";
import { state } from "./server.js";

const opened = new Promise((resolve, reject) => {
	const request = indexedDB.open("umpteen", 1);
	request.onupgradeneeded = () => request.result.createObjectStore("reviews");
	request.onsuccess = () => resolve(request.result);
	request.onerror = () => reject(request.error);
});

/** Run one request and wait until its changes are stored. */
async function run(mode, call) {
	try {
		const transaction = (await opened).transaction("reviews", mode);
		const request = call(transaction.objectStore("reviews"));
		await new Promise((resolve, reject) => Object.assign(transaction, { oncomplete: resolve, onabort: reject }));
		return request.result;
	} catch {
		warn("This browser cannot store your work: download it before you close the page.");
		return undefined;
	}
}

const key = (...more) => [state.model.name, ...more];
const all = (...more) => IDBKeyRange.bound(key(...more), key(...more, []));
const put = (value, ...more) => run("readwrite", (store) => store.put(value, key(...more)));

export const keepDecision = (decision) => put(decision, "decision", decision.index);
export const dropDecision = ({ index }) => run("readwrite", (store) => store.delete(key("decision", index)));
export const keepOrder = ({ order }) => put(order, "order");
export const keepItems = ({ items }) => put(items, "items");
export const forget = () => run("readwrite", (store) => store.delete(all()));

/** Return what is kept, as the arguments of a Queue. */
export async function kept() {
	const read = (name) => run("readonly", (store) => store.get(key(name)));
	const decisions = await run("readonly", (store) => store.getAll(all("decision")));
	return [await read("items"), await read("order"), decisions?.sort((one, two) => one.time - two.time)];
}
