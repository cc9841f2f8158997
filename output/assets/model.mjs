/* SPDX-License-Identifier: MIT */
/*
 * The profile of a page: decoded columns, trees of stacks, filters, and sums. Nothing here
 * depends on a document.
 *
 * Sums are triples: t is time (us in the profile's mode, or CPU time), n the number of samples, b
 * the base's value for the chosen weight. w is t or n, whichever determines widths. Trees are
 * numbered level by level, with the children of a node together and in order of their weight in
 * the whole profile. A level is then a range that is sorted from left to right, so drawing and
 * pointing are a search and not a walk, however deep the tree is. Node 0 is the root.
 */
export const NO_FRAMES = "[no python frames]";

/* [flags to compare, their value, name] */
export const STATES = {
	busy: [16384, 0, "Idle hidden"],
	all: [0, 0, "All states"],
	idle: [16384, 16384, "Idle: waits"],
	gil: [1, 1, "Holds the GIL"],
	waits: [4, 4, "Waits for the GIL"],
	cpu: [64, 64, "On CPU"],
	off: [96, 32, "Off CPU"],
	gc: [8, 8, "Collects garbage"],
	exception: [16, 16, "Handles an exception"],
	jit: [4096, 4096, "Runs in JIT code"],
	approximate: [8192, 8192, "Approximate"],
	exact: [8192, 0, "Exact"],
};
const ON_CPU = 64, IN_GC = 8, RUNNING = 65, HAS_CPU = 192, IN_JIT = 4096;
export const STRIP_BINS = 2048;

const CONTROL = /[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\p{Cs}/gu;

/* Escape a name for display, as output/profile/label.h does. */
export function shown(text) {
	return text.replace(CONTROL, c => {
		const hex = c.charCodeAt(0).toString(16);
		return c < "\x80" ? "\\x" + hex.padStart(2, "0") : "\\u" + hex.padStart(4, "0");
	});
}

/* LEB128, with zigzag if signed. Numbers may exceed 32 bits. */
function numbers(bytes, at, column) {
	const out = new Float64Array(column.count), signed = column.type === "s", end = at + column.bytes, { unit = 1 } = column;
	for (let i = 0; i < out.length; i++) {
		let byte = bytes[at++], value = byte & 127;
		for (let scale = 128; byte > 127; scale *= 128) {
			byte = bytes[at++];
			value += (byte & 127) * scale;
		}
		out[i] = unit * (signed ? (value & 1 ? -(value + 1) / 2 : value / 2) : value);
	}
	if (at !== end)
		throw new Error(`the column ${column.name} is damaged`);
	return out;
}

function running(deltas, sum = 0) {
	return deltas.map(delta => (sum += delta));
}

/* Whether no time passed: each sample is a thread of a core and counts as 1. */
export function isTimeless(meta) {
	return meta.mode === "count";
}

/* Samples are stored thread by thread, in order of time. */
function decodeSamples(column, meta, endOf) {
	const ticks = running(column["tick.time"], meta.first_us), counts = column["thread.count"];
	const tick = column["sample.tick"], weight = column["sample.weight"], flags = Uint16Array.from(column["sample.flags"]);
	const cpus = column["sample.cpu"], cpu = cpus && new Float64Array(tick.length);
	const time = new Float64Array(tick.length), node = new Int32Array(tick.length);
	const threads = [];
	let i = 0, nextCpu = 0;
	for (let t = 0; t < counts.length; t++) {
		const start = i, end = i + counts[t];
		let sum = 0, cpuSum = 0;
		for (let at = 0; i < end; i++) {
			at += tick[i];
			time[i] = ticks[at];
			if (isTimeless(meta))
				weight[i] = 1;
			else if (i > start)
				weight[i] += time[i] - time[i - 1];
			node[i] = endOf(column["stack.node"][column["sample.stack"][i]] - 1);
			sum += weight[i];
			if (cpu && flags[i] & HAS_CPU)
				cpuSum += cpu[i] = cpus[nextCpu++] + ((flags[i] & RUNNING) === RUNNING ? weight[i] : 0);
		}
		const row = meta.threads[t] ?? { process: -1, tid: 0, name: "[other threads]" };
		threads.push({ ...row, index: t, start, end, weight: sum, cpu: cpuSum });
	}
	const from = ticks.length ? ticks[0] : 0, to = ticks.length ? ticks[ticks.length - 1] + 1 : 1;
	return { threads, from, to, nrTicks: ticks.length, samples: { n: i, time, node, weight, flags, cpu } };
}

function decodeFunctions(column, meta) {
	const n = column["function.name"].length, lines = running(column["function.line"]);
	const name = [], path = [], first = Int32Array.from(lines);
	for (let f = 0; f < n; f++) {
		name.push(shown(meta.strings[column["function.name"][f]]) || "?");
		path.push(shown(meta.strings[column["function.path"][f]]));
	}
	const origin = Array.from(column["function.origin"], o => meta.origins[o] ?? "other");
	const python = meta.kinds.indexOf("python"), hasSource = path.map((p, f) => p !== "" && column["function.kind"][f] === python);
	name.push(NO_FRAMES);
	path.push("");
	origin.push("other");
	hasSource.push(false);
	const brief = path.map(p => p.replace(/^.*\/(site-packages|dist-packages|python3\.\d+t?)\//, "").split("/").slice(-3).join("/"));
	return { n: n + 1, name, path, brief, first, origin, hasSource, idle: n, pathIndex: column["function.path"] };
}

/*
 * The lines, as lineKey(), that may be a few statements late: those of the innermost Python
 * frames of samples in code of CPython's JIT.
 */
function lateLines(column, meta, { func, line, parent }, { n, node, flags }) {
	const late = new Set(), python = meta.kinds.indexOf("python"), kind = column["function.kind"];
	for (let i = 0; i < n; i++) {
		let at = flags[i] & IN_JIT ? node[i] : -1;
		while (at >= 0 && kind[func[at]] !== python)
			at = parent[at];
		if (at >= 0 && line[at])
			late.add(lineKey(func[at], line[at]));
	}
	return late;
}

const lineKey = (f, line) => f * 2 ** 31 + line;

/* Decode the whole profile from the payload (docs/formats.md, page-data). */
export function decode(payload) {
	const size = new DataView(payload.buffer, payload.byteOffset).getUint32(0, true);
	const meta = JSON.parse(new TextDecoder().decode(payload.subarray(4, 4 + size)));
	if (meta.version !== 1)
		throw new Error(`data version ${meta.version} is not supported: this page reads version 1`);
	const column = {};
	let at = 4 + size;
	for (const c of meta.columns) {
		column[c.name] = numbers(payload, at, c);
		at += c.bytes;
	}
	const functions = decodeFunctions(column, meta);
	const nr = column["node.frame"].length, nrFrames = column["frame.function"].length;
	/* {what a node of NO_FRAMES is below: that node}; each root has a single node. */
	const roots = new Set([...meta.process_roots, ...meta.thread_roots]), idle = new Map([[-1, nr]]);
	const n = nr + 1 + roots.size, func = new Int32Array(n), line = new Int32Array(n), parent = new Int32Array(n);
	const frame = new Int32Array(n), endOf = node => idle.get(node) ?? node;
	let nextFrame = 0; /* the first that no node has had */
	for (let i = 0; i < nr; i++) {
		frame[i] = column["node.frame"][i] ? nextFrame - column["node.frame"][i] : nextFrame++;
		func[i] = column["frame.function"][frame[i]];
		line[i] = column["frame.line"][frame[i]] + functions.first[func[i]];
		parent[i] = column["node.parent"][i] ? i - column["node.parent"][i] : -1;
		if (roots.has(func[i]))
			idle.set(i, nr + idle.size);
	}
	for (const [above, node] of idle) {
		func[node] = functions.idle;
		frame[node] = nrFrames;
		parent[node] = above;
	}
	const base = { t: new Float64Array(n), n: new Float64Array(n) };
	base.t[endOf(-1)] = meta.base_idle?.weight ?? 0;
	base.n[endOf(-1)] = meta.base_idle?.samples ?? 0;
	if (meta.has_base)
		running(column["base.node"]).forEach((node, i) => {
			base.t[endOf(node)] = column["base.weight"][i];
			base.n[endOf(node)] = column["base.samples"][i];
		});
	const nodes = { n, func, line, parent, frame, nrFrames: nrFrames + 1 };
	const decoded = decodeSamples(column, meta, endOf);
	return { meta, functions, base, nodes, late: lateLines(column, meta, nodes, decoded.samples), ...decoded };
}

/* Whether a line of a function may be a few statements late. */
export function isLate(profile, f, line) {
	return profile.late.has(lineKey(f, line));
}

/* "qualname (path:line)" of a function, or of one of its lines. */
export function label(functions, f, line = 0) {
	const place = location(functions, f, line);
	return functions.name[f] + (place && ` (${place})`);
}

export function location(functions, f, line = 0, paths = functions.path) {
	const at = line || functions.first[f];
	return paths[f] && paths[f] + (at ? ":" + at : "");
}

/* The same with only the end of the path. */
export const place = (functions, f, line) => location(functions, f, line, functions.brief);

/* The nodes of a tree under construction, found by (parent, key). */
class Nodes {
	constructor(most) {
		this.table = new Int32Array(2 ** Math.ceil(Math.log2(most * 2 + 2)));
		this.parent = new Int32Array(most + 1);
		this.key = new Int32Array(most + 1);
		this.n = 1;
		this.key[0] = -1;
	}
	find(parent, key) {
		const { table } = this;
		let h = Math.imul(parent, 0x9e3779b1) ^ Math.imul(key, 0x85ebca6b);
		for (h ^= h >>> 15; ; h++) {
			const i = table[h & (table.length - 1)];
			if (i && this.parent[i] === parent && this.key[i] === key)
				return i;
			if (i)
				continue;
			table[h & (table.length - 1)] = this.n;
			this.parent[this.n] = parent;
			this.key[this.n] = key;
			return this.n++;
		}
	}
}

/*
 * The index of each node's first child, if the children of a node were consecutive; n + 1
 * entries.
 */
function childStarts(parent, n) {
	const starts = new Int32Array(n + 1);
	for (let i = 1; i < n; i++)
		starts[parent[i] + 1]++;
	for (let i = 0; i < n; i++)
		starts[i + 1] += starts[i];
	return starts;
}

/* The order of nodes by level: heavier children first, then in their old order. */
function levelOrder(parent, n, weight) {
	const starts = childStarts(parent, n), children = new Int32Array(n), at = starts.slice();
	for (let i = 1; i < n; i++)
		children[at[parent[i]]++] = i;
	const order = new Int32Array(n);
	for (let i = 0, end = 1; i < n; i++) {
		const from = starts[order[i]], to = starts[order[i] + 1];
		if (to - from > 1)
			children.subarray(from, to).sort((a, b) => weight[b] - weight[a] || a - b);
		for (let at = from; at < to; at++)
			order[end++] = children[at];
	}
	return order;
}

/*
 * The tree of all stacks, by function. With split, each function's lines are nodes below it, and
 * callees are below lines. With merge, processes have no roots. map leads from the profile's nodes
 * to the ends of their stacks. func and line (0: the function itself) identify a node, key
 * identifies it among its siblings.
 */
export function buildTree(profile, split, merge = false) {
	const { nodes, samples, base } = profile, nrFunctions = profile.functions.n;
	const without = new Set(merge ? profile.meta.process_roots : []);
	const made = new Nodes(nodes.n * (split ? 2 : 1)), where = new Int32Array(nodes.n);
	for (let i = 0; i < nodes.n; i++) {
		const above = nodes.parent[i] < 0 ? 0 : where[nodes.parent[i]];
		where[i] = without.has(nodes.func[i]) ? above : made.find(above, nodes.func[i]);
		if (split && nodes.line[i])
			where[i] = made.find(where[i], nrFunctions + nodes.frame[i]);
	}
	const { n } = made, weight = new Float64Array(n);
	for (let i = 0; i < samples.n; i++)
		weight[where[samples.node[i]]] += samples.weight[i];
	for (let i = 0; i < nodes.n; i++)
		weight[where[i]] += base.t[i];
	for (let i = n - 1; i > 0; i--)
		weight[made.parent[i]] += weight[i];
	const order = levelOrder(made.parent, n, weight), place = new Int32Array(n);
	order.forEach((old, i) => (place[old] = i));
	const tree = {
		split, n, parent: new Int32Array(n), key: new Int32Array(n), func: new Int32Array(n),
		line: new Int32Array(n), depth: new Int32Array(n), jump: new Int32Array(n),
		map: where.map(i => place[i]), levels: [0],
	};
	tree.key[0] = tree.func[0] = -1;
	const frameOf = new Int32Array(nodes.nrFrames);
	nodes.frame.forEach((frame, i) => (frameOf[frame] = i));
	for (let i = 1; i < n; i++) {
		const key = made.key[order[i]], p = place[made.parent[order[i]]];
		const node = key < nrFunctions ? -1 : frameOf[key - nrFunctions];
		tree.parent[i] = p;
		tree.key[i] = key;
		tree.func[i] = node < 0 ? key : nodes.func[node];
		tree.line[i] = node < 0 ? 0 : nodes.line[node];
		tree.depth[i] = tree.depth[p] + 1;
		if (tree.depth[i] === tree.levels.length)
			tree.levels.push(i);
		const j = tree.jump[p], { depth } = tree;
		tree.jump[i] = p && depth[p] - depth[j] === depth[j] - depth[tree.jump[j]] ? tree.jump[j] : p;
	}
	tree.levels.push(n);
	tree.first = childStarts(tree.parent, n).map(s => s + 1);
	return tree;
}

/* The ancestor of a node at a given depth, which is not below the node; in O(log depth) steps. */
export function ancestor(tree, node, depth) {
	while (tree.depth[node] > depth)
		node = tree.depth[tree.jump[node]] >= depth ? tree.jump[node] : tree.parent[node];
	return node;
}

/* Which nodes are the outermost of their group on their path. Negative groups are ignored. */
export function outermost(tree, group, nrGroups) {
	const open = new Int32Array(nrGroups), is = new Uint8Array(tree.n), next = tree.first.slice();
	for (let i = 0; i >= 0; ) {
		if (next[i] < tree.first[i + 1]) {
			i = next[i]++;
			if (group[i] >= 0 && !open[group[i]]++)
				is[i] = 1;
			continue;
		}
		if (i && group[i] >= 0)
			open[group[i]]--;
		i = i ? tree.parent[i] : -1;
	}
	return is;
}

/* Which nodes have all of focus and none of exclude on their stacks; null without a filter. */
function stackMask({ nodes }, focus, exclude) {
	if (!focus.length && !exclude.length)
		return null;
	const bit = new Map(), pass = new Uint8Array(nodes.n), bits = new Int32Array(nodes.n);
	focus.forEach((f, i) => bit.set(f, 1 << i));
	const wanted = [...bit.values()].reduce((a, b) => a | b, 0), bad = 1 << 30; /* focus may repeat a function */
	exclude.forEach(f => bit.set(f, bad));
	for (let i = 0; i < nodes.n; i++) {
		bits[i] = (nodes.parent[i] < 0 ? 0 : bits[nodes.parent[i]]) | (bit.get(nodes.func[i]) ?? 0);
		pass[i] = (bits[i] & wanted) === wanted && !(bits[i] & bad);
	}
	return pass;
}

/*
 * Whether the filter shows each sample, regardless of time: 1, 0, or 2 if it is hidden only
 * because it is idle. threads is null for all, or a Set of indices.
 */
export function showing(profile, filter) {
	const { samples: { n, node, flags }, threads } = profile, is = new Uint8Array(n);
	const pass = stackMask(profile, filter.focus, filter.exclude), other = filter.state === "busy" ? 2 : 0;
	const [looked, value] = STATES[filter.state];
	for (const thread of threads) {
		if (filter.threads && !filter.threads.has(thread.index))
			continue;
		for (let i = thread.start; i < thread.end; i++) {
			if (pass && !pass[node[i]])
				continue;
			is[i] = (flags[i] & looked) === value ? 1 : other;
		}
	}
	return is;
}

/*
 * What the filter leaves of the samples that are showing(): sums by node of the profile, the sum
 * hidden as idle, and the strip's values by time. from and to (us, half open; null for all) do
 * not affect the strip. baseFrom and baseTo, unless null, are a range of time that takes the place
 * of the profile's base.
 */
export function select(profile, filter, is) {
	const { samples: { n: nr, time, node, flags, cpu, weight: own }, nodes, base } = profile;
	const weight = filter.weight === "cpu" ? cpu : own, byCount = filter.weight === "samples";
	const t = new Float64Array(nodes.n), n = new Float64Array(nodes.n), hidden = { t: 0, n: 0 };
	const strip = ["all", "cpu", "gc"].map(() => new Float64Array(STRIP_BINS));
	const scale = STRIP_BINS / (profile.to - profile.from);
	const from = filter.from ?? -Infinity, to = filter.to ?? Infinity;
	const comparesTimes = filter.baseFrom !== null, b = comparesTimes ? new Float64Array(nodes.n) : (byCount ? base.n : base.t).slice();
	for (let i = 0; i < nr; i++) {
		if (!is[i])
			continue;
		const inside = time[i] >= from && time[i] < to;
		if (is[i] === 2) {
			hidden.t += inside ? weight[i] : 0;
			hidden.n += inside ? 1 : 0;
			continue;
		}
		const end = (time[i] - profile.from) * scale, start = Math.max(0, Math.min(end - 1e-6, end - own[i] * scale));
		const layer = flags[i] & IN_GC ? strip[2] : flags[i] & ON_CPU ? strip[1] : null;
		const part = (byCount ? 1 : weight[i]) / Math.max(1e-6, end - start);
		for (let at = Math.floor(start); at <= end; at++) {
			const some = part * (Math.min(end, at + 1) - Math.max(start, at));
			strip[0][at] += some;
			if (layer)
				layer[at] += some;
		}
		if (inside) {
			t[node[i]] += weight[i];
			n[node[i]]++;
		}
		if (comparesTimes && time[i] >= filter.baseFrom && time[i] < filter.baseTo)
			b[node[i]] += byCount ? 1 : weight[i];
	}
	const pass = stackMask(profile, filter.focus, filter.exclude);
	for (let i = 0; i < nodes.n; i++)
		if (pass && !pass[i])
			b[i] = 0;
	return { t, n, b, hidden, strip, byCount, hasBase: profile.meta.has_base || comparesTimes };
}

/*
 * The heatmap's cells of cellUs each. weight and samples are what select() gives for a cell, all
 * and busy the time of all samples and of busy ones, whatever the state. shade is the weight once
 * more, but spread over the time that each sample accounts for.
 */
export function heatCells(profile, filter, is, cellUs) {
	const { samples: { n, time, cpu, weight: own }, from } = profile, weight = filter.weight === "cpu" ? cpu : own;
	const byCount = filter.weight === "samples", known = showing(profile, { ...filter, state: "busy" });
	const nr = Math.max(1, Math.ceil((profile.to - from) / cellUs));
	const cells = Object.fromEntries(["weight", "samples", "shade", "all", "busy"].map(name => [name, new Float64Array(nr)]));
	for (let i = 0; i < n; i++) {
		if (!known[i])
			continue;
		const place = (time[i] - from) / cellUs, cell = Math.floor(place), end = Math.max(1e-6, place);
		cells.all[cell] += own[i];
		cells.busy[cell] += known[i] === 1 ? own[i] : 0;
		if (is[i] !== 1)
			continue;
		cells.weight[cell] += weight[i];
		cells.samples[cell]++;
		const start = Math.max(0, Math.min(end - 1e-6, end - own[i] / cellUs)), part = (byCount ? 1 : weight[i]) / Math.max(1e-6, end - start);
		for (let at = Math.floor(start); at <= end; at++)
			cells.shade[at] += part * (Math.min(end, at + 1) - Math.max(start, at));
	}
	return cells;
}

/*
 * When each sample's time begins, for the time-ordered view: at its thread's previous sample, but
 * no earlier than its weight allows.
 */
export function sampleStarts({ samples: { n, time, weight }, threads, meta, from, to, nrTicks }) {
	const starts = new Float64Array(n), tick = 1.5 * (to - from) / Math.max(1, nrTicks - 1);
	for (const thread of threads)
		for (let i = thread.start; i < thread.end; i++) {
			const most = meta.mode === "cpu" ? tick : Math.max(weight[i], 1);
			starts[i] = Math.max(time[i] - most, i > thread.start ? time[i - 1] : from - tick);
		}
	return starts;
}

/* Sums of a selection over a tree: self and total by node, and the left edge of each node. */
export class Folded {
	constructor(tree, selection) {
		const { n, parent, first } = tree;
		this.tree = tree;
		this.byCount = selection.byCount;
		this.own = {};
		for (const sum of ["t", "n", "b"]) {
			const own = new Float64Array(n), from = selection[sum], { map } = tree;
			for (let i = 0; i < map.length; i++)
				own[map[i]] += from[i];
			this.own[sum] = own;
			this[sum] = sum === "b" && !selection.hasBase ? own : own.slice();
			for (let all = this[sum], i = all === own ? 0 : n - 1; i > 0; i--)
				all[parent[i]] += all[i];
		}
		this.own.w = this.byCount ? this.own.n : this.own.t;
		this.w = this.byCount ? this.n : this.t;
		this.left = new Float64Array(n);
		for (let i = 0; i < n; i++)
			for (let child = first[i], x = this.left[i]; child < first[i + 1]; child++) {
				this.left[child] = x;
				x += this.w[child];
			}
	}
	func(i) { return this.tree.func[i]; }
	line(i) { return this.tree.line[i]; }
	parent(i) { return i ? this.tree.parent[i] : -1; }
	depth(i) { return this.tree.depth[i]; }
	level(d) { return d < this.tree.levels.length - 1 ? [this.tree.levels[d], this.tree.levels[d + 1]] : null; }
	get size() { return this.tree.n; }
	children(i) { return [this.tree.first[i], this.tree.first[i + 1]]; }
	/* The number of levels with a node at least this wide between two positions. */
	height(least, from, to) {
		let most = 0;
		for (let i = 0; i < this.tree.n; i++)
			if (this.w[i] >= least && this.left[i] < to && this.left[i] + this.w[i] > from)
				most = this.tree.depth[i];
		return most + 1;
	}
	/* Which nodes are top or below it. */
	below(top) {
		const { n, parent } = this.tree, is = new Uint8Array(n);
		is[top] = 1;
		for (let i = top + 1; i < n; i++)
			is[i] = is[parent[i]];
		return is;
	}
}

/*
 * Stacks merged from their ends outwards (up; over all seeds), or from some nodes inwards. Levels
 * are made on demand, and only below nodes that are at least this.least wide or on the path: the
 * keys from the root to the zoomed node. A cursor is a node times 2, plus 1 if its line has been
 * shown.
 */
export class Merged {
	constructor(folded, seeds, up, func = -1) {
		this.source = folded;
		this.up = up;
		this.rootFunc = func;
		const root = this.group(-1, func, 0);
		for (const node of seeds)
			up ? this.put(root, node * 2, this.seed(node, func)) : this.spread(root, node);
		if (!up)
			for (const node of seeds)
				this.sum(root, this.seed(node, func));
		else if (func >= 0)
			this.climb(root);
		this.root = root;
		this.open([], 0);
	}
	/*
	 * Start over with a path kept open. Returns the node at its end, or the deepest that
	 * exists.
	 */
	open(path, part) {
		Object.assign(this, {
			funcs: [], lines: [], keys: [], parents: [], depths: [], left: [], t: [], n: [], b: [],
			starts: [0], least: Infinity, top: 0,
		});
		this.w = this.source.byCount ? this.n : this.t;
		this.frontier = [];
		this.emit(this.root, -1, 0, 0);
		this.starts.push(1);
		for (let d = 0; d < path.length; d++) {
			this.grow();
			let found = 0;
			for (let i = this.starts[d + 1]; i < this.starts[d + 2]; i++)
				if (this.keys[i] === path[d] && this.parents[i] === this.top)
					found = i;
			if (!found)
				break;
			this.top = found;
		}
		this.least = Math.max(this.w[this.top] * part, 1e-9);
		return this.top;
	}
	func(i) { return this.funcs[i]; }
	line(i) { return this.lines[i]; }
	parent(i) { return this.parents[i]; }
	depth(i) { return this.depths[i]; }
	level(d) {
		while (d >= this.starts.length - 1 && this.grow());
		return d < this.starts.length - 1 ? [this.starts[d], this.starts[d + 1]] : null;
	}
	children(i) {
		const range = this.level(this.depths[i] + 1) ?? [0, 0];
		let [a, b] = range;
		while (a < b && this.parents[a] !== i)
			a++;
		for (b = a; b < range[1] && this.parents[b] === i; )
			b++;
		return [a, b];
	}
	get size() { return this.funcs.length; }
	path(i) {
		const keys = [];
		for (; i > 0; i = this.parents[i])
			keys.unshift(this.keys[i]);
		return keys;
	}
	/* An upper bound: nodes too narrow to be seen are not followed. */
	height() {
		const { tree } = this.source;
		let most = 0;
		for (const cursor of this.root.next.keys()) {
			const d = tree.depth[cursor >> 1];
			most = Math.max(most, this.up ? d + (tree.split ? 1 : 0) : tree.levels.length - 1 - d);
		}
		return most + 1;
	}
	seed(node, func) {
		const from = this.up && func < 0 ? this.source.own : this.source;
		return { t: from.t[node], n: from.n[node], b: from.b[node] };
	}
	group(key, func, line) { return { key, func, line, t: 0, n: 0, b: 0, next: new Map() }; }
	sum(to, { t, n, b }) {
		to.t += t;
		to.n += n;
		to.b += b;
		return to;
	}
	put(group, cursor, sums) {
		const old = group.next.get(cursor);
		old ? this.sum(old, sums) : group.next.set(cursor, { ...sums });
		if (this.up)
			this.sum(group, sums);
	}
	/* Callers start at the frames themselves: step to their callers. */
	climb(root) {
		const { tree } = this.source, at = [...root.next];
		root.next = new Map();
		Object.assign(root, { t: 0, n: 0, b: 0 });
		for (const [cursor, sums] of at) {
			const caller = tree.parent[cursor >> 1];
			if (caller)
				this.put(root, caller * 2, sums);
			else
				this.sum(root, sums);
		}
	}
	spread(group, node) {
		const { source } = this, [a, b] = source.children(node);
		for (let i = a; i < b; i++)
			if (source.t[i] || source.n[i] || source.b[i])
				this.put(group, i * 2, { t: source.t[i], n: source.n[i], b: source.b[i] });
	}
	advance(group, cursor, sums) {
		const { tree } = this.source, node = cursor >> 1, inner = cursor & 1;
		this.sum(group, sums);
		if (!this.up)
			return this.spread(group, node);
		if (tree.line[node] && !inner)
			return group.next.set(cursor + 1, { ...sums });
		const outer = tree.parent[tree.line[node] ? tree.parent[node] : node];
		const old = group.next.get(outer * 2);
		if (outer)
			old ? this.sum(old, sums) : group.next.set(outer * 2, { ...sums });
	}
	emit(group, parent, left, depth) {
		this.funcs.push(group.func);
		this.lines.push(group.line);
		this.keys.push(group.key);
		this.parents.push(parent);
		this.depths.push(depth);
		this.left.push(left);
		this.t.push(group.t);
		this.n.push(group.n);
		this.b.push(group.b);
		this.frontier.push(group.next);
	}
	/* Add a level; false if it would be empty. */
	grow() {
		const depth = this.starts.length - 1, start = this.starts[depth - 1], { tree } = this.source;
		const above = this.frontier, made = this.funcs.length;
		this.frontier = [];
		for (let i = start; i < start + above.length; i++) {
			if (this.w[i] < this.least && i !== this.top)
				continue;
			const groups = new Map();
			for (const [cursor, sums] of above[i - start]) {
				const node = cursor >> 1, inner = this.up ? cursor & 1 : tree.line[node];
				const key = inner || !this.up ? tree.key[node] : tree.func[node];
				if (!groups.has(key))
					groups.set(key, this.group(key, tree.func[node], inner ? tree.line[node] : 0));
				this.advance(groups.get(key), cursor, sums);
			}
			const w = this.source.byCount ? "n" : "t";
			let left = this.left[i];
			for (const group of [...groups.values()].sort((a, b) => b[w] - a[w] || b.b - a.b)) {
				this.emit(group, i, left, depth);
				left += group[w];
			}
		}
		if (this.funcs.length === made)
			return false;
		this.starts.push(this.funcs.length);
		return true;
	}
}

/* The frames in which stacks end, for the inverted view. */
export function leaves({ tree, own }) {
	const out = [];
	for (let i = 1; i < tree.n; i++)
		if (own.n[i] || own.b[i])
			out.push(i);
	return out;
}

/* Self and total of every function; recursion counts once. outer: outermost() by function. */
export function functionSums({ tree, own, t, n, b }, outer, nrFunctions) {
	const out = {};
	for (const [name, mine, all] of [["t", own.t, t], ["n", own.n, n], ["b", own.b, b]]) {
		const self = (out["self_" + name] = new Float64Array(nrFunctions));
		const total = (out["total_" + name] = new Float64Array(nrFunctions));
		for (let i = 1; i < tree.n; i++) {
			self[tree.func[i]] += mine[i];
			if (outer[i])
				total[tree.func[i]] += all[i];
		}
	}
	return out;
}

/* Which functions match an expression. Capitals make it case-sensitive. Throws if it is invalid. */
export function matchFunctions(functions, text) {
	const pattern = new RegExp(text, /\p{Lu}/u.test(text.replace(/\\./g, "")) ? "" : "i");
	return Uint8Array.from(functions.name, (_, f) => (pattern.test(label(functions, f)) ? 1 : 0));
}

/* Which nodes are a function of mask or below one. */
export function matchNodes(tree, mask) {
	const is = new Uint8Array(tree.n);
	for (let i = 1; i < tree.n; i++)
		is[i] = mask[tree.func[i]] | is[tree.parent[i]];
	return is;
}

/* Which nodes' stacks end in path, so that their self weight is in the inverted view's zoom. */
export function endingIn({ tree }, path) {
	const is = new Uint8Array(tree.n);
	for (let i = 1; i < tree.n; i++) {
		let node = i, inner = 0, d = 0;
		for (; d < path.length && node; d++) {
			if (path[d] !== (inner ? tree.key[node] : tree.func[node]))
				break;
			if (tree.line[node] && !inner) {
				inner = 1;
				continue;
			}
			node = tree.parent[tree.line[node] ? tree.parent[node] : node];
			inner = 0;
		}
		is[i] = d === path.length ? 1 : 0;
	}
	return is;
}

/* The sum of the self weights that mask, and other if given, select. */
export function sumOwn({ own }, mask, other) {
	let t = 0, n = 0, b = 0;
	for (let i = 0; i < own.t.length; i++)
		if (mask[i] && (!other || other[i])) {
			t += own.t[i];
			n += own.n[i];
			b += own.b[i];
		}
	return { t, n, b };
}

/*
 * The basis of the source view, made once for a split tree. group numbers each distinct (path,
 * line); outer marks the outermost nodes of a line, outerFile those of a file. The modules of C
 * functions are not included, because they have no lines.
 */
export function sourceGroups(profile, tree) {
	const ids = new Map(), group = new Int32Array(tree.n).fill(-1), lines = [];
	const { pathIndex, hasSource } = profile.functions, file = new Int32Array(tree.n).fill(-1);
	for (let i = 1; i < tree.n; i++) {
		const f = tree.func[i];
		if (!hasSource[f])
			continue;
		file[i] = pathIndex[f];
		if (!tree.line[i])
			continue;
		const id = pathIndex[f] * 2 ** 31 + tree.line[i];
		if (!ids.has(id)) {
			ids.set(id, lines.length);
			lines.push({ path: pathIndex[f], line: tree.line[i] });
		}
		group[i] = ids.get(id);
	}
	const nrFiles = profile.meta.strings.length;
	return { group, file, lines, outer: outermost(tree, group, lines.length), outerFile: outermost(tree, file, nrFiles) };
}

/* The files with their sums and lines, heaviest first. */
export function sourceSums({ tree, own, t, n, w }, groups) {
	const files = new Map(), { group, file, lines, outer, outerFile } = groups;
	const zero = () => ({ self: 0, total: 0, selfN: 0, totalN: 0 });
	const rows = lines.map(({ line }) => ({ line, funcs: new Set(), ...zero() }));
	for (let i = 1; i < tree.n; i++) {
		if (file[i] < 0 || !w[i])
			continue;
		if (!files.has(file[i]))
			files.set(file[i], { path: file[i], lines: new Map(), ...zero() });
		const of = files.get(file[i]), row = rows[group[i]];
		for (const [sums, isOuter] of row ? [[of, outerFile[i]], [row, outer[i]]] : [[of, outerFile[i]]]) {
			sums.self += own.t[i];
			sums.selfN += own.n[i];
			sums.total += isOuter ? t[i] : 0;
			sums.totalN += isOuter ? n[i] : 0;
		}
		if (row) {
			of.lines.set(row.line, row);
			row.funcs.add(tree.func[i]);
		}
	}
	return [...files.values()].sort((a, b) => b.self - a.self || b.total - a.total);
}

/* The callers and callees of a line, as [function, line, weight], heaviest first. */
export function aroundLine({ tree, w }, { group, outer, lines }, path, line) {
	const wanted = lines.findIndex(l => l.path === path && l.line === line), callers = new Map(), callees = new Map();
	const add = (to, node, weight) => {
		const key = tree.key[node], old = to.get(key);
		if (weight)
			to.set(key, [tree.func[node], tree.line[node], weight + (old ? old[2] : 0)]);
	};
	for (let i = 1; i < tree.n; i++) {
		if (group[i] !== wanted || !outer[i])
			continue;
		add(callers, tree.parent[tree.parent[i]], w[i]);
		for (let child = tree.first[i]; child < tree.first[i + 1]; child++)
			add(callees, child, w[child]);
	}
	return [callers, callees].map(m => [...m.values()].filter(v => v[0] >= 0).sort((a, b) => b[2] - a[2]));
}
