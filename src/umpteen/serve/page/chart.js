// Line charts, which stretch with the page.

/** Return a chart of lines `{name, points: [[x, y], ...]}`; x starts at `left`, y at `low`. */
export function lineChart(lines, title, { left = 0, right = 1, low = 0, high = 1 } = {}) {
	const x = (value) => (right > left ? (100 * (value - left)) / (right - left) : 50).toFixed(1);
	const y = (value) => (100 - (100 * (value - low)) / (high - low || 1)).toFixed(1);
	const path = (points) => points.map(([one, two], i) => `${i ? "L" : "M"}${x(one)} ${y(two)}`).join("");
	return shape("svg", { class: "lines", viewBox: "0 0 100 100", preserveAspectRatio: "none", role: "img", "aria-label": title },
		shape("path", { d: "M0 0H100M0 50H100M0 100H100" }),
		...lines.map(({ name, points }) => shape("path", { class: name, d: path(points) })),
		// A line of no length with round ends is a dot that does not stretch.
		...lines.map(({ name, dots = [] }) => shape("path", { class: `dots ${name}`, d: dots.map((dot) => `${path([dot])}h.01`).join("") })));
}

function shape(tag, attributes, ...children) {
	const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
	for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
	made.append(...children);
	return made;
}
