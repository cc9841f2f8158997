/* SPDX-License-Identifier: MIT */
/* Basis of the views: a scrolled canvas, text cut to fit, long lists, small helpers. */

/* Create an element. Children are elements or text, never markup. */
export function el(name, properties = {}, ...children) {
	const element = document.createElement(name);
	for (const [key, value] of Object.entries(properties))
		key.includes("-") || key === "role" ? element.setAttribute(key, value) : (element[key] = value);
	element.append(...children);
	return element;
}

export const percent = part => (!part ? "0" : (part * 100).toFixed(Math.abs(part) < 0.0995 ? 2 : 1)) + "\u202f%";
export const count = n => Math.round(n).toLocaleString("en-US");
export function duration(us) {
	const size = Math.abs(us);
	if (size >= 999500)
		return (us / 1e6).toFixed(size >= 1e8 ? 0 : size >= 1e7 ? 1 : 2) + "\u202fs";
	if (size >= 999.5)
		return (us / 1e3).toFixed(size >= 1e5 ? 0 : size >= 1e4 ? 1 : 2) + "\u202fms";
	return Math.round(us) + "\u202fµs";
}

/* A moment since the start, with so many digits of a second: 4.2 s, 12:30.2, 1:05:00. */
export function moment(us, digits = 0) {
	const s = Number((us / 1e6).toFixed(digits)), two = n => String(Math.floor(n)).padStart(2, "0");
	if (s < 60)
		return s.toFixed(digits) + "\u202fs";
	const seconds = (s % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
	return (s < 3600 ? String(Math.floor(s / 60)) : `${Math.floor(s / 3600)}:${two(s / 60 % 60)}`) + ":" + seconds;
}

/* A range of time, with digits to a hundredth of its length, unless they are 0 at both ends. */
export function timeRange(from, to) {
	let digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10((to - from) / 1e6))));
	while (digits && [from, to].every(us => Math.round(us / 10 ** (6 - digits)) % 10 === 0))
		digits--;
	return `${moment(from, digits)} – ${moment(to, digits)}`;
}

/* Round times from a second to a day, in us. */
export const ROUND_TIMES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map(s => s * 1e6);

/* A round time that fits into span at most that many times. */
export function roundTime(span, most) {
	const least = span / most, size = 10 ** Math.floor(Math.log10(least)), day = ROUND_TIMES.at(-1);
	return least < 5e5 ? [1, 2, 5, 10].map(k => k * size).find(step => least <= step)
		: ROUND_TIMES.find(step => least <= step) ?? Math.ceil(least / day) * day;
}

/* A colour from the style sheet. */
export const ink = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();

export const ROW = 20;
const MOST_SCROLL = 8e6; /* px; browsers limit layouts to a few times this */

/*
 * A canvas that stays in place while its host scrolls over content of any height. paint() draws
 * the visible part, at most once a frame.
 */
export class Stage {
	constructor(host, paint) {
		this.host = host;
		this.paint = paint;
		this.canvas = el("canvas", { "aria-hidden": "true" });
		this.spacer = el("div");
		host.append(this.canvas, this.spacer);
		this.context = this.canvas.getContext("2d");
		this.content = 0;
		host.addEventListener("scroll", () => this.redraw());
		new ResizeObserver(() => this.resize()).observe(host);
	}
	resize() {
		this.width = this.host.clientWidth;
		this.height = this.host.clientHeight;
		if (!this.width || !this.height)
			return;
		this.ratio = devicePixelRatio || 1;
		this.canvas.width = Math.round(this.width * this.ratio);
		this.canvas.height = Math.round(this.height * this.ratio);
		this.canvas.style.height = this.height + "px";
		this.setContent(this.content);
		this.draw();
	}
	setContent(px) {
		this.content = px;
		this.spacer.style.height = Math.max(0, Math.min(px, MOST_SCROLL) - (this.height || 0)) + "px";
	}
	/* Content px for each scrolled px. */
	get stretch() {
		const real = this.host.scrollHeight - this.height;
		return real > 0 && this.content > MOST_SCROLL ? (this.content - this.height) / real : 1;
	}
	get scroll() { return this.host.scrollTop * this.stretch; }
	set scroll(y) { this.host.scrollTop = y / this.stretch; }
	/* Scroll a row of the content into view. */
	reveal(y, size = ROW) {
		if (y < this.scroll || y + size > this.scroll + this.height)
			this.scroll = Math.max(0, y - this.height / 3);
	}
	redraw() {
		this.asked ??= requestAnimationFrame(() => this.draw());
	}
	draw() {
		if (this.asked)
			cancelAnimationFrame(this.asked);
		this.asked = undefined;
		if (!this.width || !this.host.clientWidth)
			return;
		this.context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		this.context.clearRect(0, 0, this.width, this.height);
		this.paint(this.context);
	}
}

/* Widths of a font's characters, so that text can be cut without measuring it each time. */
export class Type {
	constructor(font) {
		this.font = font;
		this.context = document.createElement("canvas").getContext("2d");
		this.context.font = font;
		this.widths = new Map();
		this.dots = this.width("…");
	}
	width(text) {
		let sum = 0;
		for (const c of text) {
			let w = this.widths.get(c);
			if (w === undefined)
				this.widths.set(c, (w = this.context.measureText(c).width));
			sum += w;
		}
		return sum;
	}
	/* As much of text as fits, with an ellipsis if it is cut; "" if nothing fits. */
	fit(text, room) {
		let sum = 0, end = 0, cut = 0;
		for (const c of text) {
			sum += this.width(c);
			end += c.length;
			if (sum + this.dots <= room)
				cut = end;
			if (sum > room)
				return cut ? text.slice(0, cut) + "…" : "";
		}
		return text;
	}
}

const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
let type;
export const labelType = () => (type ??= new Type("12px " + SANS));

/* Call before drawing blocks. */
export function prepare(context) {
	context.font = labelType().font;
	context.textBaseline = "middle";
}

/* Draw a frame: its block and, if they fit, its name and place. */
export function block(context, x, y, width, fill, inks, name, place, faded) {
	const a = Math.round(x * 2) / 2, b = Math.round((x + width) * 2) / 2, type = labelType();
	context.fillStyle = fill;
	context.fillRect(a, y, Math.max(0.5, b - a - (width > 3 ? 1 : 0)), ROW - 1);
	if (width < 26)
		return;
	const start = Math.max(a, 0) + 5, room = b - start - 5, text = type.fit(name, room);
	context.fillStyle = faded ? inks.place : inks.label;
	context.fillText(text, start, y + 10);
	const rest = room - type.width(text) - 8;
	if (!place || text !== name || rest < 40)
		return;
	context.fillStyle = inks.place;
	context.fillText(type.fit(place, rest), start + room - rest, y + 10);
}

/* The height of an axis of time. */
export const AXIS = 16;

/*
 * Draw an axis of time below y. width is in px; us is the time of a px, first the px, from the
 * start of time, at which the axis begins. Marks are at least least apart, in us.
 */
export function timeAxis(context, y, width, us, first = 0, least = 0) {
	const step = Math.max(least, roundTime(width * us, Math.max(2, width / 110))), end = width + first, line = ink("line"), dim = ink("dim");
	context.fillStyle = line;
	context.fillRect(0, y, width, 1);
	context.font = labelType().font.replace("12px", "11px");
	context.textBaseline = "middle";
	for (let i = Math.max(0, Math.floor(first * us / step)); i * step / us < end; i++) {
		const x = i * step / us - first, text = !i ? "0" : step < 1e6 ? duration(i * step) : moment(i * step);
		context.fillStyle = line;
		context.fillRect(Math.round(x), y, 1, 4);
		context.fillStyle = dim;
		if (x + 60 < width)
			context.fillText(text, x + 4, y + 9);
	}
}

export function outline(context, x, y, width, colour) {
	context.strokeStyle = colour;
	context.lineWidth = 2;
	context.strokeRect(x + 1, y + 1, Math.max(1, width - 3), ROW - 3);
}

/* A list that keeps only the visible rows in the document. make(i) creates a row. */
export class List {
	constructor(host, height, make) {
		Object.assign(this, { host, height, make, count: 0 });
		this.inner = el("div", { className: "rows" });
		host.append(this.inner);
		host.addEventListener("scroll", () => this.draw());
		new ResizeObserver(() => this.draw()).observe(host);
	}
	set(count) {
		this.count = count;
		this.inner.style.height = count * this.height + "px";
		this.draw();
	}
	reveal(i) {
		const { host, height } = this, y = i * height;
		if (y < host.scrollTop || y + height > host.scrollTop + host.clientHeight)
			host.scrollTop = Math.max(0, y - host.clientHeight / 3);
		this.draw();
	}
	draw() {
		const from = Math.max(0, Math.floor(this.host.scrollTop / this.height) - 4);
		const to = Math.min(this.count, from + Math.ceil(this.host.clientHeight / this.height) + 8);
		const rows = [];
		for (let i = from; i < to; i++) {
			const row = this.make(i);
			row.style.top = i * this.height + "px";
			row.style.height = this.height + "px";
			rows.push(row);
		}
		this.inner.replaceChildren(...rows);
	}
}
