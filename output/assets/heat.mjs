/* SPDX-License-Identifier: MIT */
/*
 * The time heatmap, in the place of the time strip: a column a second, a row 20 ms, darker where
 * there is more. A click or a drag selects a range of time, which may begin and end within columns;
 * with Shift, the range that it is compared with. Where seconds are narrower than a pixel, a
 * column has the mean of some.
 */
import { CELL_US, HEAT_ROWS, heatCells } from "./model.mjs";
import { Stage, count, duration, el, ink } from "./stage.mjs";

const COLUMN_US = CELL_US * HEAT_ROWS, MOST_WIDTH = 14;

export class Heat {
	/* changed(from, to, isBase): in us. */
	constructor(host, page, changed) {
		Object.assign(this, { host, page, changed, cells: null, ranges: [null, null], at: null });
		this.stage = new Stage(host, context => this.paint(context));
		host.addEventListener("pointerdown", event => this.press(event));
		host.addEventListener("pointermove", event => this.move(event));
		host.addEventListener("pointerup", event => this.release(event));
		host.addEventListener("pointerleave", () => this.drag || this.hover(null));
		host.addEventListener("keydown", event => this.key(event));
	}
	/* range and base: [from, to] in us, or null. */
	set(filter, is, range, base) {
		const known = [is, filter.weight];
		this.ranges = [range, base];
		if (!this.cells || known.some((v, i) => v !== this.known[i])) {
			this.cells = heatCells(this.page.profile, filter, is);
			this.known = known;
			this.image = null;
		}
		this.stage.redraw();
	}
	get columns() { return Math.ceil(this.cells.length / HEAT_ROWS); }
	/* How many seconds a column of the image has, and how wide that is in px. */
	get layout() {
		const each = Math.max(1, Math.ceil(this.columns / this.stage.width)), nr = Math.ceil(this.columns / each);
		return { each, nr, width: Math.min(MOST_WIDTH, this.stage.width / nr) };
	}
	/* The cell at a position: the first second of its column. */
	cellAt(event) {
		const { each, nr, width } = this.layout, row = Math.floor(event.offsetY / this.stage.height * HEAT_ROWS);
		const column = Math.min(nr - 1, Math.max(0, Math.floor(event.offsetX / width)));
		return column * each * HEAT_ROWS + Math.min(HEAT_ROWS - 1, Math.max(0, row));
	}
	time(cell) { return this.page.profile.from + cell * CELL_US; }
	/* The range from one cell to another, as [from, to]. A column that stands for several seconds is taken whole. */
	span(a, b) {
		const { each } = this.layout, from = Math.min(a, b), to = Math.max(a, b);
		if (each === 1)
			return [this.time(from), this.time(to + 1)];
		const column = cell => Math.floor(cell / (each * HEAT_ROWS)) * each * HEAT_ROWS;
		return [this.time(column(from)), this.time(column(to) + each * HEAT_ROWS)];
	}
	press(event) {
		if (event.button)
			return;
		this.host.setPointerCapture(event.pointerId);
		this.drag = { cell: this.cellAt(event), isBase: event.shiftKey };
		this.move(event);
	}
	move(event) {
		this.at = this.cellAt(event);
		if (this.drag)
			this.ranges[Number(this.drag.isBase)] = this.span(this.drag.cell, this.at);
		this.hover(event);
		this.stage.redraw();
	}
	release() {
		const { drag } = this;
		this.drag = null;
		if (drag)
			this.changed(...this.span(drag.cell, this.at), drag.isBase);
	}
	hover(event) {
		if (!event) {
			this.at = null;
			this.stage.redraw();
			return this.page.hideTip();
		}
		const { from } = this.page.profile, [a, b] = this.drag ? this.ranges[Number(this.drag.isBase)] : this.span(this.at, this.at);
		this.page.showTip(event, [el("b", {}, `${duration(a - from)} – ${duration(b - from)}`), el("div", { className: "place" }, this.amountText(a, b))]);
	}
	amountText(a, b) {
		const { from } = this.page.profile, first = Math.round((a - from) / CELL_US), end = Math.min(this.cells.length, Math.round((b - from) / CELL_US));
		let sum = 0;
		for (let i = first; i < end; i++)
			sum += this.cells[i];
		return this.page.byCount ? `${count(sum)} ${this.page.noun}` : duration(sum);
	}
	key(event) {
		const step = { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -HEAT_ROWS, ArrowRight: HEAT_ROWS }[event.key];
		if (step === undefined && event.key !== "Enter")
			return;
		event.stopPropagation();
		event.preventDefault();
		const last = this.cells.length - 1, at = Math.max(0, Math.min(last, (this.at ?? 0) + (step ?? 0) * (Math.abs(step) > 1 ? this.layout.each : 1)));
		this.at = at;
		if (event.key === "Enter")
			this.changed(...this.span(at, at), event.shiftKey);
		this.stage.redraw();
	}
	/* The cells as an image of one pixel each. */
	draw() {
		const { cells } = this, { each, nr } = this.layout, sums = new Float64Array(nr * HEAT_ROWS);
		for (let i = 0; i < cells.length; i++)
			sums[Math.floor(i / HEAT_ROWS / each) * HEAT_ROWS + i % HEAT_ROWS] += cells[i];
		const sorted = sums.filter(v => v > 0).sort(), most = sorted[Math.floor(sorted.length * 0.98)] || 1;
		const canvas = el("canvas", { width: nr, height: HEAT_ROWS }), context = canvas.getContext("2d"), image = context.createImageData(nr, HEAT_ROWS);
		const palette = Array.from({ length: 65 }, (_, i) => this.page.colours.heatCell(i / 64));
		for (let column = 0; column < nr; column++)
			for (let row = 0; row < HEAT_ROWS; row++) {
				const value = sums[column * HEAT_ROWS + row], at = (row * nr + column) * 4;
				if (column * each * HEAT_ROWS + row >= cells.length)
					continue;
				const colour = palette[value ? Math.max(8, Math.min(64, Math.round(value / most * 64))) : 0];
				image.data.set([1, 3, 5].map(k => parseInt(colour.slice(k, k + 2), 16)), at);
				image.data[at + 3] = 255;
			}
		context.putImageData(image, 0, 0);
		return canvas;
	}
	paint(context) {
		const { stage } = this;
		if (!this.cells)
			return;
		if (this.drawn !== stage.width)
			this.image = null;
		this.drawn = stage.width;
		this.image ??= this.draw();
		const { nr, width } = this.layout;
		context.imageSmoothingEnabled = false;
		context.drawImage(this.image, 0, 0, nr * width, stage.height);
		for (const [i, name] of [[1, "base"], [0, "mark"]])
			if (this.ranges[i])
				this.paintRange(context, ...this.ranges[i], ink(name));
		if (this.at !== null && !this.drag)
			this.paintRange(context, ...this.span(this.at, this.at), ink("fg"));
	}
	/* Outline a range, which is part of a column, or one part of the first, whole ones, and a part of the last. */
	paintRange(context, from, to, colour) {
		const { each, width } = this.layout, start = this.page.profile.from, tall = this.stage.height;
		const first = Math.floor((from - start) / COLUMN_US), last = Math.floor((to - 1 - start) / COLUMN_US);
		const x = column => Math.floor(column / each) * width, y = time => ((time - start) / COLUMN_US % 1) * tall, top = y(from), bottom = y(to) || tall;
		context.strokeStyle = colour;
		context.fillStyle = colour;
		context.lineWidth = 2;
		if (first === last || x(first) === x(last))
			return context.strokeRect(x(first), each > 1 ? 0 : top, width, each > 1 ? tall : Math.max(2, bottom - top));
		context.beginPath();
		const right = x(last) + width;
		[[x(first), tall], [x(first), top], [x(first) + width, top], [x(first) + width, 0], [right, 0], [right, bottom], [x(last), bottom], [x(last), tall]]
			.forEach((point, i) => (i ? context.lineTo(...point) : context.moveTo(...point)));
		context.closePath();
		context.stroke();
		context.globalAlpha = 0.12;
		context.fill();
		context.globalAlpha = 1;
	}
}
