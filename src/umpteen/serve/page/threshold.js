// The slider for the threshold, with what the validation split says of it.

import { lineChart } from "./chart.js";
import { make, on, percent } from "./dom.js";
import { follow, setThreshold, state } from "./server.js";

/** Put a slider into an element; all sliders show the same threshold. */
export function thresholdSlider(place) {
	const value = make("output");
	const slider = make("input", { type: "range", min: 0, max: 0.99, step: 0.01 });
	const chart = make("div.curve");
	const words = make("p.expectation");
	place.append(make("label.threshold", make("span.caption", "Confident from ", value), chart, slider), words);
	on(slider, "input", () => setThreshold(Number(slider.value)));
	const tell = () => {
		slider.value = state.threshold;
		value.textContent = percent(state.threshold);
		words.replaceChildren(...expectation(state.info.threshold_curve));
		slider.setAttribute("aria-valuetext", `${value.textContent}. ${words.textContent}`);
		chart.style.setProperty("--at", state.threshold / 0.99);
	};
	follow("info", () => { chart.replaceChildren(...curve(state.info.threshold_curve)); tell(); });
	follow("threshold", tell);
}

function expectation(points) {
	const point = points?.findLast(({ threshold }) => threshold <= state.threshold + 1e-9);
	if (!point) return ["This model is not calibrated."];
	if (point.precision === null) return ["No label is expected at this threshold."];
	const key = (name, words) => make(`span.key.${name}`, `${words} `, make("b", percent(point[name])));
	return [key("precision", "expected precision"), key("recall", "recall"), make("span", make("b", point.labels_per_text.toFixed(1)), " labels per text")];
}

function curve(points) {
	if (!points?.length) return [];
	const line = (name) => ({ name, points: points.filter((one) => one.precision !== null).map((one) => [one.threshold, one[name]]) });
	return [lineChart([line("recall"), line("precision")], "Precision and recall by threshold", { right: 0.99 }), make("span.needle")];
}
