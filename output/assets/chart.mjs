/* SPDX-License-Identifier: MIT */
/*
 * The time-ordered flame chart: a lane for each thread, with a block for each run of samples that
 * share a frame. A pixel shows the sample at its middle, so the cost of drawing depends on the
 * number of pixels, not of samples.
 */
import { ancestor, place } from "./model.mjs";
import { ROW, Stage, block, duration, ink, labelType, outline, prepare } from "./stage.mjs";

const HEAD = 24, GAP = 8;

export class Chart {
	/* on: hover(run, event), select(run), menu(run, event), window(from, to). */
	constructor(host, page, on) {
		Object.assign(this, { host, page, on, lanes: [], hovered: null, selected: null });
		this.stage = new Stage(host, context => this.paint(context));
		const { canvas } = this.stage;
		canvas.addEventListener("pointerdown", event => this.press(event));
		canvas.addEventListener("pointermove", event => this.move(event));
		canvas.addEventListener("pointerup", event => this.release(event));
		canvas.addEventListener("pointerleave", event => this.drag || this.hover(null, event));
		canvas.addEventListener("dblclick", event => {
			const run = this.find(event.offsetX, event.offsetY);
			if (run)
				this.show(run.from, run.to);
		});
		canvas.addEventListener("contextmenu", event => {
			event.preventDefault();
			const run = this.find(event.offsetX, event.offsetY);
			if (run)
				on.menu(run, event);
		});
		canvas.addEventListener("wheel", event => this.wheel(event), { passive: false });
	}
	/* is: model.showing(); starts: model.sampleStarts(). */
	set(tree, is, starts, threads, from, to) {
		Object.assign(this, { tree, is, starts, from, to, hovered: null, selected: null });
		const { node } = this.page.profile.samples;
		let y = 4;
		this.lanes = threads.map(thread => {
			let rows = 1;
			for (let i = thread.start; i < thread.end; i++)
				if (is[i] === 1 && tree.depth[tree.map[node[i]]] > rows)
					rows = tree.depth[tree.map[node[i]]];
			const lane = { thread, y, rows };
			y += HEAD + rows * ROW + GAP;
			return lane;
		});
		this.stage.setContent(y);
		this.stage.redraw();
	}
	/* Show another time range of at least 20 us. */
	show(from, to) {
		const { profile } = this.page, span = Math.max(20, Math.min(to - from, profile.to - profile.from));
		this.from = Math.max(profile.from, Math.min(from, profile.to - span));
		this.to = this.from + span;
		this.stage.redraw();
		this.on.window(this.from, this.to);
	}
	time(x) { return this.from + x / this.stage.width * (this.to - this.from); }
	x(time) { return (time - this.from) / (this.to - this.from) * this.stage.width; }
	zoom(x, factor) {
		const at = this.time(x);
		this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
	}
	wheel(event) {
		if (event.shiftKey)
			return;
		event.preventDefault();
		const unit = event.deltaMode ? 30 : 1, span = this.to - this.from;
		if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
			const by = event.deltaX * unit / this.stage.width * span;
			this.show(this.from + by, this.to + by);
		} else {
			this.zoom(event.offsetX, Math.exp(Math.max(-1, Math.min(1, event.deltaY * unit * 0.002))));
		}
	}
	press(event) {
		if (event.button)
			return;
		this.stage.canvas.setPointerCapture(event.pointerId);
		this.drag = { x: event.clientX, y: event.clientY, from: this.from, to: this.to, scroll: this.stage.scroll, moved: false };
	}
	move(event) {
		const { drag, stage } = this;
		if (!drag)
			return this.hover(this.find(event.offsetX, event.offsetY), event);
		const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
		drag.moved ||= Math.abs(dx) + Math.abs(dy) > 4;
		if (!drag.moved)
			return;
		const by = dx / stage.width * (drag.to - drag.from);
		stage.scroll = drag.scroll - dy;
		this.hover(null, event);
		this.show(drag.from - by, drag.to - by);
	}
	release(event) {
		const { drag } = this;
		this.drag = null;
		if (!drag || drag.moved)
			return;
		this.selected = this.find(event.offsetX, event.offsetY);
		if (event.altKey && this.selected)
			this.on.menu(this.selected, event);
		else
			this.on.select(this.selected);
		this.stage.redraw();
	}
	hover(run, event) {
		if (run !== this.hovered)
			this.stage.redraw();
		this.hovered = run;
		this.on.hover(run, event);
	}
	/* The sample that a thread shows at a time; -1 if there is none. */
	sampleAt({ start, end }, time) {
		const { samples } = this.page.profile;
		let a = start, b = end;
		while (a < b) {
			const middle = (a + b) >> 1;
			if (samples.time[middle] < time)
				a = middle + 1;
			else
				b = middle;
		}
		return a < end && this.starts[a] <= time && this.is[a] === 1 ? a : -1;
	}
	/* The run at a position, as {node, first, last, from, to, thread, y}, or null. */
	find(x, y) {
		const { tree, hovered } = this, { samples } = this.page.profile, inside = y + this.stage.scroll;
		const lane = this.lanes.find(l => inside >= l.y && inside < l.y + HEAD + l.rows * ROW);
		const depth = lane && Math.floor((inside - lane.y - HEAD) / ROW) + 1;
		const at = depth > 0 ? this.sampleAt(lane.thread, this.time(x)) : -1;
		const own = i => tree.map[samples.node[i]];
		if (at < 0 || tree.depth[own(at)] < depth)
			return null;
		const node = ancestor(tree, own(at), depth);
		if (hovered && hovered.node === node && at >= hovered.first && at <= hovered.last)
			return hovered;
		const same = i => this.is[i] === 1 && ancestor(tree, own(i), depth) === node;
		let first = at, last = at;
		while (first > lane.thread.start && this.starts[first] <= samples.time[first - 1] && same(first - 1))
			first--;
		while (last + 1 < lane.thread.end && this.starts[last + 1] <= samples.time[last] && same(last + 1))
			last++;
		return { node, first, last, from: this.starts[first], to: samples.time[last], thread: lane.thread, y: lane.y + HEAD + (depth - 1) * ROW };
	}
	/* What the pixels of a lane show, as [x, end, node] for each run of equal ones. */
	segments({ start, end }) {
		const { stage, tree, is, starts } = this, { time, node } = this.page.profile.samples, out = [];
		let i = start;
		for (let x = 0; x < stage.width; x++) {
			const at = this.time(x + 0.5);
			while (i < end && time[i] < at)
				i++;
			const now = i < end && starts[i] <= at && is[i] === 1 ? tree.map[node[i]] : -1;
			if (out.length && out[out.length - 1][2] === now)
				out[out.length - 1][1] = x + 1;
			else
				out.push([x, x + 1, now]);
		}
		return out.filter(s => s[2] >= 0);
	}
	paint(context) {
		const { stage } = this, inks = { label: ink("label"), place: ink("place"), dim: ink("dim"), fg: ink("fg"), line: ink("line") };
		prepare(context);
		for (const lane of this.lanes) {
			const y = lane.y - stage.scroll;
			if (y > stage.height || y + HEAD + lane.rows * ROW < 0)
				continue;
			this.paintLane(context, inks, lane, y + HEAD);
			this.paintHead(context, inks, lane.thread, Math.max(y, Math.min(0, y + lane.rows * ROW)));
		}
		for (const [run, colour] of [[this.hovered, inks.fg], [this.selected, ink("mark")]])
			if (run) {
				const x = Math.max(-4, this.x(run.from)), end = Math.min(stage.width + 4, this.x(run.to));
				outline(context, x, run.y - stage.scroll, end - x, colour);
			}
	}
	paintHead(context, inks, thread, y) {
		context.fillStyle = ink("bg");
		context.fillRect(0, y, this.stage.width, HEAD - 2);
		context.fillStyle = inks.line;
		context.fillRect(0, y + HEAD - 3, this.stage.width, 1);
		context.fillStyle = inks.fg;
		const name = this.page.threadName(thread);
		context.fillText(name, 8, y + 11);
		context.fillStyle = inks.dim;
		context.fillText(this.page.threadNote(thread), 8 + labelType().width(name) + 10, y + 11);
	}
	/*
	 * Draws rows from the innermost visible one outwards, so that each step goes to a parent.
	 */
	paintLane(context, inks, lane, top) {
		const { stage, tree } = this, { functions } = this.page.profile;
		const deepest = Math.min(lane.rows, Math.ceil((stage.height - top) / ROW)), outmost = Math.max(1, Math.floor(-top / ROW));
		const segments = this.segments(lane.thread);
		for (const segment of segments)
			segment[2] = ancestor(tree, segment[2], deepest);
		for (let d = deepest; d >= outmost; d--)
			for (let i = 0; i < segments.length; ) {
				const [x, , node] = segments[i];
				let end = segments[i][1];
				for (i++; i < segments.length && segments[i][2] === node && segments[i][0] === end; i++)
					end = segments[i][1];
				if (tree.depth[node] < d)
					continue;
				const f = tree.func[node], line = tree.line[node], { mask, colours } = this.page;
				block(context, x, top + (d - 1) * ROW, end - x, colours.frame(f, line, mask && !mask[f]), inks,
					line ? `line ${line}` : functions.name[f], line ? "" : place(functions, f), mask && !mask[f]);
				for (let j = i - 1; j >= 0 && segments[j][2] === node && segments[j][0] >= x; j--)
					segments[j][2] = tree.parent[node];
			}
	}
	key(event) {
		const span = this.to - this.from, middle = this.stage.width / 2;
		if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
			const by = (event.key === "ArrowLeft" ? -0.2 : 0.2) * span;
			this.show(this.from + by, this.to + by);
		} else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
			this.stage.scroll += event.key === "ArrowUp" ? -3 * ROW : 3 * ROW;
		} else if (event.key === "+" || event.key === "=") {
			this.zoom(middle, 0.6);
		} else if (event.key === "-") {
			this.zoom(middle, 1.6);
		} else if (event.key === "Enter" && this.selected) {
			this.show(this.selected.from, this.selected.to);
		} else {
			return false;
		}
		return true;
	}
	runText(run) {
		const start = this.page.profile.from, from = Math.max(run.from, start);
		return `${duration(run.to - from)} from ${duration(from - start)} to ${duration(run.to - start)}`;
	}
}
