// The page: which view is shown, and which model is asked.

import { attempt, count, find, findAll, make, on } from "./dom.js";
import { startFinder } from "./finder.js";
import { startModel } from "./model.js";
import { startReview } from "./review.js";
import { ask, refresh, state } from "./server.js";
import { startTry } from "./try.js";

function route() {
	const wanted = location.hash || "#try";
	for (const link of findAll("nav a")) {
		const isWanted = link.hash === wanted;
		link.ariaCurrent = isWanted ? "page" : null;
		find(`#view-${link.hash.slice(1)}`).hidden = !isWanted;
		if (isWanted) document.title = `${link.text} · umpteen`;
	}
	if (wanted === "#model" && state.info) attempt(refresh);
}

async function start() {
	route();
	on(window, "hashchange", route);
	const { models } = await ask("v1");
	const wanted = new URLSearchParams(location.search).get("model");
	state.model = models.find(({ name }) => name === wanted) ?? models[0];
	const chooser = find("#models");
	for (const { name, n_labels } of models) {
		chooser.append(make("option", { value: name, selected: name === state.model.name }, `${name} · ${count(n_labels)} labels`));
	}
	on(chooser, "change", () => { location.search = new URLSearchParams({ model: chooser.value }); });
	for (const begin of [startTry, startFinder, startModel, startReview]) begin();
	await refresh();
}

attempt(start);
