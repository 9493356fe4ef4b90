// The server (paths are relative, so that a prefix is fine), its model, and the threshold.

import { closed, find, pause, write } from "./dom.js";

const KEY = "umpteen.key";
const MOST_TRIES = 4;
const changes = new EventTarget();
let asking = null;
let isDeclined = false;

export const state = { model: null, info: null, threshold: 0.5 };

/** Call a function when what is known of the model ("info") or the "threshold" changes. */
export const follow = (change, call) => changes.addEventListener(change, call);

const tell = (change) => changes.dispatchEvent(new Event(change));

export const path = (rest = "") => `v1/${encodeURIComponent(state.model.name)}${rest}`;

/** Ask what the model is, also later: it may have learned or may be another one. */
export async function refresh() {
	state.info = await ask(path());
	state.threshold = Number(localStorage.getItem(place()) ?? balanced(state.info.threshold_curve));
	tell("info");
}

const place = () => `umpteen.threshold.${state.model.name}`;

export function setThreshold(threshold) {
	localStorage.setItem(place(), threshold);
	state.threshold = threshold;
	tell("threshold");
}

export const isConfident = ({ probability }) => probability >= state.threshold;

/** Return the threshold with the best F1. */
function balanced(curve) {
	const f1 = ({ precision, recall }) => (precision * recall) / (precision + recall || 1);
	const best = curve?.reduce((one, other) => (f1(other) > f1(one) ? other : one), curve[0]);
	return best?.threshold ?? 0.5;
}

/** Ask the server: POST with a body, GET without. */
export async function ask(path, body, isLeaving = false) {
	for (let tries = 1; ; tries++) {
		const response = await send(path, body, isLeaving);
		if (response.ok) return response.json();
		if ([401, 403].includes(response.status) && !isLeaving && !isDeclined) await askForKey();
		else if (response.status === 429 && tries < MOST_TRIES) await pause(1000 * retryAfter(response));
		else throw new Error(await reason(response));
	}
}

async function send(path, body, keepalive) {
	const headers = {};
	const key = sessionStorage.getItem(KEY);
	if (key) headers.Authorization = `Bearer ${key}`;
	if (body) headers["Content-Type"] = "application/json";
	const method = body ? "POST" : "GET";
	try {
		return await fetch(path, { method, headers, keepalive, body: JSON.stringify(body) });
	} catch {
		throw new Error("The server does not respond.");
	}
}

const retryAfter = (response) => Math.min(Number(response.headers.get("Retry-After")) || 1, 10);

async function reason(response) {
	const answer = await response.json().catch(() => ({}));
	return typeof answer.detail === "string" ? answer.detail : `The server returned an error (${response.status}).`;
}

/** Ask the person for a key, once for all requests that wait for it. */
function askForKey() {
	asking ??= (async () => {
		write("#key-title", sessionStorage.getItem(KEY) ? "This needs another API key" : "This server needs an API key");
		isDeclined = (await closed(find("#key"))) !== "yes";
		asking = null;
		if (!isDeclined) sessionStorage.setItem(KEY, find("#key-text").value.trim());
	})();
	return asking;
}
