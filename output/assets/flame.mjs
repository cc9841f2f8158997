/* SPDX-License-Identifier: MIT */
/*
 * Stacks on a canvas: the flame graph, the inverted one, callers and callees. A view is a Folded
 * or a Merged of model.mjs. Only nodes at least half a pixel wide are drawn; each level is
 * searched for them.
 */
import { place } from "./model.mjs";
import { ROW, Stage, block, ink, outline, prepare } from "./stage.mjs";

const NARROW = 0.5;

/* The first of a level's nodes [a, b) that ends after x. */
function endsBehind(view, a, b, x) {
	while (a < b) {
		const middle = (a + b) >> 1;
		if (view.left[middle] + view.w[middle] > x)
			b = middle;
		else
			a = middle + 1;
	}
	return a;
}

/* The name of a node in a view of stacks. */
export function nodeName(functions, view, i, all) {
	if (view.line(i))
		return `line ${view.line(i)}`;
	return view.func(i) < 0 ? all : functions.name[view.func(i)];
}

export class Flame {
	/* on: hover(i, event), select(i), zoom(i), menu(i, event); i is -1 for no node. */
	constructor(host, page, on) {
		Object.assign(this, { host, page, on, view: null, top: 0, selected: -1, hovered: -1, flip: false });
		this.stage = new Stage(host, context => this.paint(context));
		const at = event => this.find(event.offsetX, event.offsetY);
		const { canvas } = this.stage;
		canvas.addEventListener("pointermove", event => this.hover(at(event), event));
		canvas.addEventListener("pointerleave", event => this.hover(-1, event));
		canvas.addEventListener("click", event => {
			const i = at(event);
			this.select(i);
			if (i >= 0)
				event.altKey ? on.menu(i, event) : on.zoom(i);
		});
		canvas.addEventListener("contextmenu", event => {
			event.preventDefault();
			const i = at(event);
			this.select(i);
			if (i >= 0)
				on.menu(i, event);
		});
	}
	/* Show a view with node top as wide as the stage, animated if the view stays the same. */
	set(view, top, flip) {
		const from = this.view === view && this.seen ? { ...this.seen } : null;
		if (this.view !== view)
			this.selected = this.hovered = -1;
		Object.assign(this, { view, top, flip });
		this.target = { left: view.left[top], w: view.w[top] };
		cancelAnimationFrame(this.gliding);
		this.measure();
		const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
		if (!from || still || !(from.w > 0) || !(this.target.w > 0))
			this.seen = this.target;
		else
			this.glide(from, performance.now());
		this.stage.redraw();
	}
	glide(from, start) {
		const part = Math.min(1, (performance.now() - start) / 180), ease = 1 - (1 - part) ** 3;
		const mix = key => from[key] + (this.target[key] - from[key]) * ease;
		this.seen = part < 1 ? { left: mix("left"), w: mix("w") } : this.target;
		this.stage.draw();
		if (part < 1)
			this.gliding = requestAnimationFrame(() => this.glide(from, start));
	}
	measure() {
		const { stage, view, target } = this, width = stage.width || 1000;
		const levels = view.height(target.w / width * NARROW, target.left, target.left + target.w);
		this.rows = levels;
		stage.setContent(levels * ROW + 4);
		if (this.flip && !this.top)
			stage.scroll = levels * ROW;
	}
	/* Position of a level in px from the top of the stage. */
	y(depth) {
		const { stage } = this, all = Math.max(this.rows * ROW + 4, stage.height);
		return (this.flip ? all - (depth + 1) * ROW - 2 : depth * ROW + 2) - stage.scroll;
	}
	depthAt(y) {
		const { stage } = this, all = Math.max(this.rows * ROW + 4, stage.height), inside = y + stage.scroll;
		return Math.floor((this.flip ? all - 2 - inside : inside - 2) / ROW);
	}
	find(x, y) {
		const { view, seen, stage } = this, range = view && this.depthAt(y) >= 0 && view.level(this.depthAt(y));
		if (!range || !(seen.w > 0))
			return -1;
		const value = seen.left + x / stage.width * seen.w, i = endsBehind(view, ...range, value);
		return i < range[1] && view.left[i] <= value && view.w[i] > 0 ? i : -1;
	}
	paint(context) {
		const { view, stage, seen, page } = this;
		if (!view || !(seen.w > 0))
			return;
		const inks = { label: ink("label"), place: ink("place"), few: ink("few"), mark: ink("mark"), fg: ink("fg") };
		prepare(context);
		const edges = [this.depthAt(0), this.depthAt(stage.height)].sort((a, b) => a - b);
		for (let d = Math.max(0, edges[0]); d <= edges[1]; d++) {
			const range = view.level(d);
			if (!range)
				break;
			this.paintLevel(context, inks, range, this.y(d), stage.width / seen.w);
		}
		for (const [i, colour] of [[this.hovered, inks.fg], [this.selected, inks.mark]])
			if (i >= 0) {
				const x = Math.max(0, (view.left[i] - seen.left) * stage.width / seen.w);
				const end = Math.min(stage.width, (view.left[i] + view.w[i] - seen.left) * stage.width / seen.w);
				if (end > 0 && x < stage.width)
					outline(context, x, this.y(view.depth(i)), end - x, colour);
			}
		page.painted?.();
	}
	paintLevel(context, inks, [a, b], y, scale) {
		const { view, seen, page, stage } = this, { functions } = page.profile, end = seen.left + seen.w;
		for (let i = endsBehind(view, a, b, seen.left); i < b && view.left[i] < end; ) {
			let x = (view.left[i] - seen.left) * scale, width = view.w[i] * scale;
			if (width < NARROW) {
				const next = endsBehind(view, i, b, seen.left + (Math.floor(x) + 1) / scale);
				context.fillStyle = inks.few;
				context.fillRect(Math.floor(x), y, 1, ROW - 1);
				i = Math.max(i + 1, next);
				continue;
			}
			if (x < 0) {
				width += x;
				x = 0;
			}
			width = Math.min(width, stage.width - x);
			const f = view.func(i), name = nodeName(functions, view, i, page.rootName(view));
			block(context, x, y, width, this.fill(i), inks, name, f < 0 || view.line(i) ? "" : place(functions, f), page.mask && !page.mask[f]);
			i = endsBehind(view, i + 1, b, view.left[i] + view.w[i]);
		}
	}
	fill(i) {
		const { view, page } = this, f = view.func(i), faded = page.mask && !(f >= 0 && page.mask[f]);
		if (page.isDiff && f >= 0)
			return page.colours.delta(page.change(view, i), faded);
		return f < 0 ? ink("root") : page.colours.frame(f, view.line(i), faded || view.depth(i) < view.depth(this.top));
	}
	hover(i, event) {
		if (i !== this.hovered) {
			this.hovered = i;
			this.stage.redraw();
		}
		this.stage.canvas.style.cursor = i >= 0 ? "pointer" : "default";
		this.on.hover(i, event);
	}
	select(i) {
		this.selected = i;
		if (i >= 0) {
			const inside = this.y(this.view.depth(i)) + this.stage.scroll;
			this.stage.reveal(inside);
		}
		this.on.select(i);
		this.stage.redraw();
	}
	/* Arrow keys move along the tree as it is drawn. Returns whether the key was handled. */
	key(event) {
		const { view, selected, flip } = this;
		const step = { ArrowUp: flip ? 1 : -1, ArrowDown: flip ? -1 : 1, ArrowLeft: "left", ArrowRight: "right" }[event.key];
		if (event.key === "Enter" && selected >= 0)
			this.on.zoom(selected);
		else if (!step)
			return false;
		else if (selected < 0)
			this.select(this.top);
		else if (step === 1)
			this.go(view.children(selected), 0);
		else if (step === -1)
			this.go([view.parent(selected), view.parent(selected) + 1], 0);
		else
			this.go(view.children(view.parent(selected)), step === "left" ? -1 : 1);
		return true;
	}
	/* Select the first visible node of a range, or the next visible sibling on one side. */
	go([a, b], side) {
		let i = side ? this.selected + side : a;
		while (side >= 0 && i >= a && i < b && !(this.view.w[i] > 0))
			i++;
		if (i >= Math.max(a, 0) && i < b && this.view.w[i] > 0)
			this.select(i);
	}
}
