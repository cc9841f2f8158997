/* SPDX-License-Identifier: MIT */
/* Exports the view to a file. */
import { label } from "./model.mjs";
import { ROW, labelType } from "./stage.mjs";
import { nodeName } from "./flame.mjs";

/* A line for each run, with everything known of it. */
const about = meta => [["run", meta.runs], ["base", meta.base_runs ?? []]].flatMap(([key, runs]) => runs.map(run => `${key} ${JSON.stringify(run)}\n`));

/*
 * Collapsed stacks of the self weights that mask selects, as output/formats/collapsed.c writes
 * them.
 */
export function collapsed({ functions }, folded, mask) {
	const { tree, own } = folded, lines = [], total = new Map();
	const name = i => (tree.line[i] ? label(functions, tree.func[i], tree.line[i]) : label(functions, tree.func[i])).replaceAll(";", ":").replace(/ \d+(\.\d*)?$/, "$& ()");
	for (let i = 1; i < tree.n; i++) {
		if (!own.w[i] || (mask && !mask[i]))
			continue;
		const frames = [];
		for (let node = i; node; node = tree.parent[tree.line[node] ? tree.parent[node] : node])
			frames.push(name(node));
		const stack = frames.reverse().join(";");
		total.set(stack, (total.get(stack) ?? 0) + own.w[i]);
	}
	for (const [stack, weight] of total)
		lines.push(`${stack} ${weight}\n`);
	return lines;
}

const escaped = text => text.replace(/[&<>"\ufffe\uffff]/g, c => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c] ?? "?");

/* All levels of a Flame as an SVG image. */
export function svg(flame, page, title) {
	const { view, top, flip } = flame, width = Math.max(800, flame.stage.width), type = labelType(), out = [];
	const scale = width / view.w[top], from = view.left[top], { functions } = page.profile;
	let height = 0;
	for (let d = 0, range = view.level(0); range; range = view.level(++d))
		for (let i = range[0]; i < range[1]; i++) {
			const x = Math.max(0, (view.left[i] - from) * scale), end = Math.min(width, (view.left[i] + view.w[i] - from) * scale);
			if (end - x < 0.5)
				continue;
			height = d + 1;
			const name = nodeName(functions, view, i, page.rootName(view));
			out.push([d, x, end - x, flame.fill(i), name, page.tip(view, i)]);
		}
	const rows = out.map(([d, x, w, fill, name, tip]) => {
		const y = 34 + (flip ? height - 1 - d : d) * ROW, text = w < 26 ? "" : type.fit(name, w - 10);
		return `<g><title>${escaped(tip)}</title><rect x="${x.toFixed(2)}" y="${y}" width="${Math.max(0.5, w - (w > 3 ? 1 : 0)).toFixed(2)}" height="${ROW - 1}" fill="${fill}"/>` +
			(text && `<text x="${(x + 5).toFixed(2)}" y="${y + 14}">${escaped(text)}</text>`) + "</g>\n";
	});
	const dark = page.colours.dark;
	const metadata = `<metadata>${about(page.profile.meta).map(escaped).join("")}</metadata>\n`;
	return [`<?xml version="1.0" encoding="UTF-8"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height * ROW + 44}" ` +
		`font-family="system-ui,sans-serif" font-size="12" fill="${dark ? "#eee" : "#1b1b1f"}">\n<rect width="100%" height="100%" fill="${dark ? "#17181c" : "#fff"}"/>\n` +
		`<text x="6" y="21" font-weight="600">${escaped(title)}</text>\n`, metadata, ...rows, "</svg>\n"];
}
