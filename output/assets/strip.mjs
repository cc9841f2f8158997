/* SPDX-License-Identifier: MIT */
/* The time strip: the selection's weight over time, and a brush to select a range. */
import { STRIP_BINS } from "./model.mjs";
import { AXIS, Stage, ink, timeAxis } from "./stage.mjs";

const EDGE = 6;

export class Strip {
	/* changed(from, to): in us, or null twice for everything. */
	constructor(host, page, changed) {
		Object.assign(this, { host, page, changed, strip: null, brush: null, window: null });
		this.stage = new Stage(host, context => this.paint(context));
		host.addEventListener("pointerdown", event => this.press(event));
		host.addEventListener("pointermove", event => this.move(event));
		host.addEventListener("pointerup", () => (this.drag = null));
		host.addEventListener("dblclick", () => this.choose(null));
		host.addEventListener("keydown", event => this.key(event));
	}
	set(strip, brush, window) {
		Object.assign(this, { strip, brush, window });
		this.stage.redraw();
	}
	x(time) {
		const { from, to } = this.page.profile;
		return (time - from) / (to - from) * this.stage.width;
	}
	time(x) {
		const { from, to } = this.page.profile;
		return Math.round(from + Math.max(0, Math.min(1, x / this.stage.width)) * (to - from));
	}
	choose(brush) {
		const { from, to } = this.page.profile;
		this.brush = brush && [Math.max(from, Math.min(...brush)), Math.min(to, Math.max(...brush))];
		if (this.brush && this.brush[1] - this.brush[0] < 1)
			this.brush = null;
		this.stage.redraw();
		this.pending ??= requestAnimationFrame(() => {
			this.pending = undefined;
			this.changed(...(this.brush ?? [null, null]));
		});
	}
	/* What dragging at x would change: an edge, the whole brush, or a new one. */
	grip(x) {
		if (!this.brush)
			return "new";
		const [a, b] = this.brush.map(t => this.x(t));
		return Math.abs(x - a) < EDGE ? "from" : Math.abs(x - b) < EDGE ? "to" : x > a && x < b ? "all" : "new";
	}
	press(event) {
		if (event.button)
			return;
		this.host.setPointerCapture(event.pointerId);
		this.drag = { grip: this.grip(event.offsetX), x: event.offsetX, brush: this.brush };
	}
	move(event) {
		const { drag } = this, x = event.offsetX, at = this.time(x);
		if (!drag) {
			this.host.style.cursor = { from: "ew-resize", to: "ew-resize", all: "grab", new: "crosshair" }[this.grip(x)];
			return;
		}
		if (drag.grip === "new") {
			if (Math.abs(x - drag.x) > 3)
				this.choose([this.time(drag.x), at]);
		} else if (drag.grip === "all") {
			const [a, b] = drag.brush, { from, to } = this.page.profile;
			const by = Math.max(from - a, Math.min(to - b, at - this.time(drag.x)));
			this.choose([a + by, b + by]);
		} else {
			this.choose(drag.grip === "from" ? [at, drag.brush[1]] : [drag.brush[0], at]);
		}
	}
	key(event) {
		const { from, to } = this.page.profile, by = (to - from) / 50 * (event.key === "ArrowLeft" ? -1 : 1);
		if (event.key !== "ArrowLeft" && event.key !== "ArrowRight")
			return;
		event.stopPropagation();
		event.preventDefault();
		const [a, b] = this.brush ?? [from, from + (to - from) / 10];
		this.choose((this.brush ? (event.shiftKey ? [a, b + by] : [a + by, b + by]) : [a, b]).map(Math.round));
	}
	paint(context) {
		const { stage, strip, brush } = this, { width, height } = stage;
		if (!strip)
			return;
		const room = height - AXIS, columns = Math.max(1, Math.floor(width / 2));
		const bars = strip.map(bins => {
			const out = new Float64Array(columns), wide = STRIP_BINS / columns;
			for (let i = 0; i < columns; i++)
				for (let at = i * wide; at < (i + 1) * wide - 1e-6; at = Math.floor(at) + 1)
					out[i] += bins[Math.floor(at)] * (Math.min((i + 1) * wide, Math.floor(at) + 1) - at);
			return out;
		});
		const sorted = Float64Array.from(bars[0]).sort();
		const most = Math.min(sorted[columns - 1], 1.3 * sorted[Math.floor(columns * 0.97)] || Infinity) || 1;
		const bar = width / columns;
		for (let i = 0; i < columns; i++) {
			const parts = [bars[0][i], bars[1][i] + bars[2][i], bars[2][i]];
			["strip", "strip-cpu", "strip-gc"].forEach((name, layer) => {
				const size = Math.min(1, parts[layer] / most) * (room - 3);
				if (size <= 0)
					return;
				context.fillStyle = this.inks[name];
				context.fillRect(i * bar, room - size, bar + 0.3, size);
			});
		}
		timeAxis(context, room, width, (this.page.profile.to - this.page.profile.from) / width);
		if (this.window)
			this.paintWindow(context, room);
		if (brush)
			this.paintBrush(context, room);
	}
	get inks() {
		return (this.known ??= Object.fromEntries(["strip", "strip-cpu", "strip-gc", "veil", "mark"].map(n => [n, ink(n)])));
	}
	paintWindow(context, room) {
		const [a, b] = this.window.map(t => this.x(t));
		context.fillStyle = this.inks.mark;
		context.fillRect(a, room - 1, Math.max(2, b - a), 3);
	}
	paintBrush(context, room) {
		const [a, b] = this.brush.map(t => this.x(t)), { inks, stage } = this;
		context.fillStyle = inks.veil;
		context.fillRect(0, 0, a, room);
		context.fillRect(b, 0, stage.width - b, room);
		context.fillStyle = inks.mark;
		for (const x of [a, b]) {
			context.fillRect(x - 1, 0, 2, room);
			context.fillRect(x - 3, room / 2 - 9, 6, 18);
		}
	}
}
