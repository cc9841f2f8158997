/* SPDX-License-Identifier: MIT */
/* Colours of frames: one hue for each origin, varied slightly by module, at equal lightness. */

/* Hue in OKLCH, how far modules deviate from it, and a name. The legend has this order. */
export const ORIGINS = {
	application: [62, 16, "application"],
	"site-packages": [250, 16, "site-packages"],
	"standard library": [158, 14, "standard library"],
	native: [305, 12, "native"],
	jit: [345, 8, "JIT"],
	gc: [25, 0, "garbage collector"],
	kernel: [205, 8, "kernel"],
	task: [225, 6, "asyncio tasks"],
	other: [260, 0, "other"],
};

/* OKLCH as #rrggbb, clipped. Source: https://bottosson.github.io/posts/oklab/ */
export function oklch(lightness, chroma, hue) {
	const a = chroma * Math.cos(hue * Math.PI / 180), b = chroma * Math.sin(hue * Math.PI / 180);
	const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
	const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
	const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
	const byte = v => {
		const c = Math.min(1, Math.max(0, v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055));
		return Math.round(255 * c).toString(16).padStart(2, "0");
	};
	return "#" + byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) +
		byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) +
		byte(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s);
}

/* FNV-1a, scaled to a number between 0 and 1. */
function hash(text) {
	let h = 0x811c9dc5;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
	return ((h ^ (h >>> 15)) >>> 0) / 2 ** 32;
}

export class Colours {
	constructor(functions, dark) {
		this.dark = dark;
		this.fills = functions.path.map((path, f) => {
			const origin = functions.origin[f], h = hash(path || functions.name[f]);
			return [0, 1, 2].map(kind => this.fill(origin, h, kind));
		});
	}
	/* kind: 0 for a function, 1 for one of its lines, 2 for what a search did not match. */
	fill(origin, h = 0.5, kind = 0) {
		const [hue, stray] = ORIGINS[origin] ?? ORIGINS.other;
		const chroma = (ORIGINS[origin] ?? ORIGINS.other) === ORIGINS.other ? 0.008 : 0.088;
		const lightness = (this.dark ? 0.46 : 0.835) + (((h * 16) % 1) - 0.5) * 0.05;
		const shift = this.dark ? [0, -0.1, -0.2] : [0, 0.07, 0.12];
		return oklch(lightness + shift[kind], chroma * [1, 0.55, 0.18][kind], hue + (h * 2 - 1) * stray);
	}
	frame(f, isLine, faded) {
		return this.fills[f][faded ? 2 : isLine ? 1 : 0];
	}
	/* change: difference of the shares, -1 to 1. Red grew, blue shrank. */
	delta(change, faded) {
		const size = faded ? 0 : Math.min(1, Math.sqrt(Math.abs(change) * 4));
		const lightness = this.dark ? 0.36 + 0.16 * size : 0.93 - 0.2 * size;
		return oklch(lightness, 0.004 + 0.15 * size, change > 0 ? 27 : 255);
	}
	/* A cell of the heatmap, from 0 to 1: yellow to red, and against the dark violet to yellow. */
	heatCell(part) {
		if (!part)
			return oklch(this.dark ? 0.2 : 0.975, 0.004, 260);
		return this.dark ? oklch(0.27 + 0.6 * part, 0.06 + 0.11 * Math.sin(Math.PI * part ** 0.8), 300 + 155 * part)
			: oklch(0.955 - 0.53 * part, 0.05 + 0.14 * Math.sqrt(part), 95 - 70 * part);
	}
	/* Background of a source line, by its heat from 0 to 1. */
	heat(part) {
		const size = Math.sqrt(part);
		return oklch(this.dark ? 0.24 + 0.2 * size : 0.985 - 0.17 * size, 0.005 + 0.12 * size, 55 - 20 * size);
	}
}
