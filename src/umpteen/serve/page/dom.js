// Elements, numbers as people read them, messages and questions. Texts never become HTML.

export const find = (selector) => document.querySelector(selector);
export const findAll = (selector) => [...document.querySelectorAll(selector)];
export const on = (place, event, call) => place.addEventListener(event, call);

/** Return a new element: make("li.row", "text", {title: "..."}, child). */
export function make(what, ...content) {
	const [tag, ...classes] = what.split(".");
	const made = document.createElement(tag);
	made.classList.add(...classes);
	for (const one of content) {
		if (one?.constructor === Object) set(made, one);
		else made.append(one ?? "");
	}
	return made;
}

function set(made, properties) {
	for (const [name, value] of Object.entries(properties)) {
		if (name in made) made[name] = value;
		else made.setAttribute(name, value);
	}
}

export function write(selector, ...content) {
	find(selector).replaceChildren(...content);
}

export function percent(share) {
	const rounded = Math.round(100 * share);
	if (share > 0 && rounded === 0) return "<1\u00a0%";
	return `${share < 1 ? Math.min(rounded, 99) : 100}\u00a0%`;
}

export const count = (number) => number.toLocaleString("en");

export const several = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

export const announce = (message) => write("#status", message);

let hiding;

export function warn(message) {
	write("#alert", message);
	find("#alert").hidden = false;
	clearTimeout(hiding);
	hiding = setTimeout(() => { find("#alert").hidden = true; }, 8000);
}

/** Do something, and show why it fails. */
export async function attempt(action) {
	try {
		return await action();
	} catch (problem) {
		warn(problem.message);
		return null;
	}
}

export const pause = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });

/** Return the value of the button that closed a dialog; Escape gives "". */
export function closed(dialog) {
	dialog.returnValue = "";
	dialog.showModal();
	return new Promise((resolve) => {
		dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
	});
}

export async function isSure(title, text, yes) {
	write("#sure-title", title);
	write("#sure-text", text);
	write("#sure-yes", yes);
	return (await closed(find("#sure"))) === "yes";
}
