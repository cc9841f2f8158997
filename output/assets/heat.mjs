/* SPDX-License-Identifier: MIT */
/*
 * The time heatmap, in the place of the time strip: a column a second, a row a fiftieth of it, and
 * wider columns where there are too many. A click or a drag selects a range of time, which may
 * begin and end within columns; with Shift, the range that it is compared with.
 */
import { heatCells } from "./model.mjs";
import { AXIS, ROUND_TIMES, Stage, count, duration, el, ink, roundTime, timeAxis, timeRange } from "./stage.mjs";

const ROWS = 50, LEAST_WIDTH = 4;
const MOST_COLUMNS = 1e5; /* more than a day of seconds; a column takes 2 kB */

export class Heat {
	/* changed(range, isBase): range is [from, to] in us, or null. */
	constructor(host, page, changed) {
		const field = host.querySelector(".stage"), [wider, narrower] = host.querySelectorAll("button");
		Object.assign(this, { host, field, page, changed, wider, narrower, wanted: 0, columnUs: 0, ranges: [null, null], hovered: null, cursor: null, anchor: null });
		this.stage = new Stage(field, context => this.paint(context));
		field.addEventListener("pointerdown", event => this.press(event));
		field.addEventListener("pointermove", event => this.move(event));
		field.addEventListener("pointerup", () => this.release());
		field.addEventListener("pointercancel", () => this.cancel());
		field.addEventListener("pointerleave", () => this.drag || this.leave());
		field.addEventListener("blur", () => this.leave());
		field.addEventListener("keydown", event => this.key(event));
		wider.addEventListener("click", () => this.zoom(1));
		narrower.addEventListener("click", () => this.zoom(-1));
	}
	/* range and base: [from, to] in us, or null. */
	set(filter, is, range, base) {
		const known = [is, filter.weight];
		this.ranges = [range, base];
		if (!this.known || known.some((v, i) => v !== this.known[i]))
			Object.assign(this, { known, filter, cells: null });
		this.stage.redraw();
	}

	/* The columns. */
	get span() { return this.page.profile.to - this.page.profile.from; }
	get columns() { return Math.ceil(this.span / this.columnUs); }
	get cellUs() { return this.columnUs / ROWS; }
	get tall() { return this.stage.height - AXIS; }
	get fitting() { return Math.max(ROUND_TIMES[0], roundTime(this.span, Math.max(1, Math.floor(this.stage.width / LEAST_WIDTH)))); }
	/* Whether columns of this time may be wanted: not too many, and no wider than is needed. */
	allows(us) { return us <= this.fitting && this.span / us <= MOST_COLUMNS; }
	step(by) { return ROUND_TIMES[ROUND_TIMES.indexOf(this.columnUs) + by]; }
	/* Whether there are cells, which follow what was set and the width. */
	get isReady() {
		if (this.known && this.stage.width)
			this.prepare();
		return !!this.cells;
	}
	/* Choose the columns for the width that there is now, and sum what they show. */
	prepare() {
		const { stage, field } = this, us = this.wanted || this.fitting;
		if (this.cells && us === this.columnUs && stage.width === this.drawnWidth)
			return;
		const middle = this.columnUs && ((this.cursor ?? 0) + 0.5) * this.cellUs, isOther = us !== this.columnUs;
		if (!this.cells || isOther) {
			this.cancel();
			this.columnUs = us;
			this.cells = heatCells(this.page.profile, this.filter, this.known[0], this.cellUs);
			const sorted = this.cells.shade.filter(v => v > 0).sort();
			this.most = sorted[Math.floor(sorted.length * 0.98)] || 1;
			this.highest = sorted.at(-1) ?? 0;
			this.cursor = this.cursor === null ? null : Math.floor(middle / this.cellUs);
			this.hovered = this.anchor = null;
		}
		this.drawnWidth = stage.width;
		this.width = Math.max(LEAST_WIDTH, stage.width / this.columns);
		field.parentNode.classList.toggle("scrolls", this.columns * this.width > stage.width + 1);
		stage.spacer.style.width = Math.floor(this.columns * this.width) + "px";
		if (isOther)
			field.scrollLeft = middle / us * this.width - stage.width / 2;
		this.image = null;
		this.showScale();
	}
	zoom(by) {
		const us = this.step(by);
		if (!this.allows(us))
			return;
		this.wanted = us;
		this.cursor ??= Math.floor(((this.ranges[0]?.[0] ?? this.page.profile.from) - this.page.profile.from) / this.cellUs);
		this.stage.redraw();
	}
	showScale() {
		const { host, page } = this, round = us => duration(us).replace(/\.0+(?=\D)/, ""), [least, bar, most] = host.querySelector(".colours").children;
		host.querySelector(".cells").textContent = `a column ${round(this.columnUs)}, a row ${round(this.cellUs)}`;
		least.textContent = "0";
		bar.style.background = `linear-gradient(90deg, ${[0, 0.13, 0.25, 0.5, 0.75, 1].map(v => page.colours.heatCell(v)).join(", ")})`;
		/* Parts of samples, because each is spread over its time. */
		const amount = v => (page.byCount && v < 10 ? `${Number(v.toPrecision(2))} samples` : page.amount(v));
		most.textContent = (this.highest > this.most && amount(this.highest) !== amount(this.most) ? "≥\u202f" : "") + amount(this.most);
		this.wider.hidden = this.narrower.hidden = this.fitting === ROUND_TIMES[0];
		this.wider.disabled = !this.allows(this.step(1));
		this.narrower.disabled = !this.allows(this.step(-1));
	}

	/* Positions and times. */
	cellAt(event) {
		const { left, top } = this.field.getBoundingClientRect(), limit = (v, most) => Math.max(0, Math.min(most - 1, Math.floor(v)));
		const column = limit((event.clientX - left + this.field.scrollLeft) / this.width, this.columns), row = limit((event.clientY - top) / this.tall * ROWS, ROWS);
		return Math.min(this.cells.weight.length - 1, column * ROWS + row);
	}
	/* The range from one cell to another, as [from, to]. */
	between(a, b) {
		const { from, to } = this.page.profile;
		return [from + Math.min(a, b) * this.cellUs, Math.min(to, from + (Math.max(a, b) + 1) * this.cellUs)];
	}
	choose(range, isBase) {
		this.ranges[Number(isBase)] = range;
		this.changed(range, isBase);
	}

	/* The pointer. */
	press(event) {
		if (event.button || !this.isReady || event.offsetY > this.stage.height)
			return;
		this.field.setPointerCapture(event.pointerId);
		this.anchor = null;
		this.drag = { cell: this.cellAt(event), isBase: event.shiftKey, before: [...this.ranges] };
		this.move(event);
	}
	move(event) {
		if (!this.isReady)
			return;
		this.hovered = this.cellAt(event);
		if (this.drag)
			this.ranges[Number(this.drag.isBase)] = this.between(this.drag.cell, this.hovered);
		this.tell(event, this.drag?.cell ?? this.hovered, this.hovered);
		this.stage.redraw();
	}
	release() {
		const { drag } = this;
		this.drag = null;
		if (!drag)
			return;
		this.cursor = this.hovered;
		this.choose(this.between(drag.cell, this.hovered), drag.isBase);
	}
	cancel() {
		this.ranges = this.drag?.before ?? this.ranges;
		this.drag = null;
		this.stage.redraw();
	}
	leave() {
		this.hovered = null;
		this.page.hideTip();
		this.stage.redraw();
	}
	/* Show what is known of the cells from one to another. */
	tell(event, a, b) {
		const { page, cells } = this, { from, meta } = page.profile, [start, end] = this.between(a, b), sum = name => {
			let total = 0;
			for (let i = Math.min(a, b); i <= Math.max(a, b); i++)
				total += cells[name][i];
			return total;
		};
		const all = sum("all"), clock = new Date(meta.start_ms + start / 1000), rows = [
			...(page.byCount ? [] : [[this.filter.weight === "cpu" ? "CPU time" : "Time", duration(sum("weight"))]]), ["Samples", count(sum("samples"))],
			...(page.hasIdle && all ? [["Busy", Math.round(sum("busy") / all * 100) + "\u202f%"]] : []),
		];
		page.showTip(event, [
			el("b", {}, timeRange(start - from, end - from)), ...(meta.start_ms ? [el("span", { className: "place" }, `at ${clock.toLocaleTimeString()}`)] : []),
			el("table", {}, ...rows.map(row => el("tr", {}, ...row.map(text => el("td", {}, text))))),
		]);
		return `${timeRange(start - from, end - from)}: ${rows.map(row => row.join(" ")).join(", ")}`;
	}

	/* The keyboard. */
	key(event) {
		const step = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -ROWS, ArrowRight: ROWS, Home: -Infinity, End: Infinity }[event.key], by = { "+": -1, "=": -1, "-": 1 }[event.key];
		const isGoing = event.key === "Escape" && (this.drag || this.ranges[0] || this.ranges[1]);
		if (event.ctrlKey || event.metaKey || event.altKey || !(step || by || isGoing || event.key === "Enter") || !this.isReady)
			return;
		event.stopPropagation();
		event.preventDefault();
		if (step)
			this.walk(step, event.shiftKey);
		else if (by)
			this.zoom(by);
		else if (event.key === "Enter")
			this.choose(this.between(this.anchor ?? this.cursor ?? 0, this.cursor ?? 0), event.shiftKey);
		else
			this.drag ? this.cancel() : this.choose(null, !!this.ranges[1]);
	}
	/* Move the cursor; if it extends, the anchor stays behind. */
	walk(step, extends_) {
		const { field, width, stage, cursor } = this, last = this.cells.weight.length - 1;
		this.anchor = extends_ ? this.anchor ?? cursor ?? 0 : null;
		this.cursor = cursor === null && Number.isFinite(step) ? 0 : Math.max(0, Math.min(last, (cursor ?? 0) + step));
		this.hovered = null;
		const x = Math.floor(this.cursor / ROWS) * width, { left, top } = field.getBoundingClientRect();
		if (x < field.scrollLeft || x + width > field.scrollLeft + stage.width)
			field.scrollLeft = x - stage.width / 2;
		const place = { clientX: left + x + width - field.scrollLeft, clientY: top + (this.cursor % ROWS + 1) / ROWS * this.tall };
		this.page.say(this.tell(place, this.anchor ?? this.cursor, this.cursor));
		stage.redraw();
	}

	/* The visible columns as an image of a pixel for each cell. */
	draw(first, nr) {
		const cells = this.cells.shade, canvas = el("canvas", { width: nr, height: ROWS }), context = canvas.getContext("2d"), image = context.createImageData(nr, ROWS);
		const palette = Array.from({ length: 65 }, (_, i) => [1, 3, 5].map(k => parseInt(this.page.colours.heatCell(i / 64).slice(k, k + 2), 16)));
		for (let i = 0; i < nr * ROWS && first * ROWS + i < cells.length; i++) {
			const value = cells[first * ROWS + i], at = (i % ROWS * nr + Math.floor(i / ROWS)) * 4;
			image.data.set(palette[value ? Math.max(8, Math.min(64, Math.round(value / this.most * 64))) : 0], at);
			image.data[at + 3] = 255;
		}
		context.putImageData(image, 0, 0);
		return canvas;
	}
	paint(context) {
		if (!this.isReady)
			return;
		const { stage, width, columns, field: { scrollLeft } } = this;
		const first = Math.floor(scrollLeft / width), nr = Math.min(columns, Math.ceil((scrollLeft + stage.width) / width)) - first;
		if (!this.image || this.first !== first || this.image.width !== nr)
			this.image = this.draw(first, nr);
		this.first = first;
		context.imageSmoothingEnabled = false;
		context.drawImage(this.image, first * width - scrollLeft, 0, nr * width, this.tall);
		timeAxis(context, this.tall, stage.width, this.columnUs / width, scrollLeft, this.columnUs);
		context.save();
		context.beginPath();
		context.rect(0, 0, stage.width, this.tall);
		context.clip();
		for (const [i, name] of [[1, "base"], [0, "mark"]])
			if (this.ranges[i])
				this.paintRange(context, ...this.ranges[i], ink(name), i);
		const at = this.hovered ?? (this.field.matches(":focus-visible") ? this.cursor : null);
		if (at !== null && !this.drag)
			this.paintRange(context, ...this.between(this.hovered === null ? this.anchor ?? at : at, at), ink("fg"), 0);
		context.restore();
	}
	/* Outline a range: a part of a column; or one of the first, whole ones, and one of the last. */
	paintRange(context, from, to, colour, isDashed) {
		const { width, tall, columnUs, field: { scrollLeft } } = this, start = this.page.profile.from;
		const first = Math.floor((from - start) / columnUs), last = Math.max(first, Math.ceil((to - start) / columnUs) - 1);
		const x = column => column * width - scrollLeft, y = (time, column) => (time - start - column * columnUs) / columnUs * tall;
		const top = y(from, first), bottom = Math.max(y(to, last), first === last ? top + 2 : 2), path = new Path2D();
		if (first === last)
			path.rect(x(first), top, width, bottom - top);
		else
			[[x(first), tall], [x(first), top], [x(first + 1), top], [x(first + 1), 0], [x(last + 1), 0], [x(last + 1), bottom], [x(last), bottom], [x(last), tall]]
				.forEach((point, i) => (i ? path.lineTo(...point) : path.moveTo(...point)));
		path.closePath();
		for (const [style, size, dashes] of [[ink("bg"), 4, []], [colour, 2, isDashed ? [5, 3] : []]]) {
			context.strokeStyle = style;
			context.lineWidth = size;
			context.setLineDash(dashes);
			context.stroke(path);
		}
	}
}
