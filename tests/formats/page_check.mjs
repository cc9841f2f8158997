// SPDX-License-Identifier: MIT
/*
 * Checks that a page of the interactive flame graph shows in a headless Chromium exactly what an
 * oracle computes from its samples: as a whole, zoomed, searched, brushed, by thread and state,
 * by function and by line. Also checks that the page requests only itself, has no error, and
 * makes no markup of names.
 *
 * The file of answers is written by page_fixture.mjs: {functions: [{name, path, line}], samples:
 * [{thread, time, weight, cpu, flags, stack: [[function, line], …] outermost first}]}, us.
 * Without it only the page's own sums are compared with each other. The result is an array of
 * failures.
 */
import fs from "node:fs";
import path from "node:path";

const STATES = { busy: s => !(s.flags & 16384), idle: s => s.flags & 16384, all: () => true, cpu: s => s.flags & 64, gil: s => s.flags & 1, waits: s => s.flags & 4, gc: s => s.flags & 8, exception: s => s.flags & 16, off: s => (s.flags & 96) === 32 };
let failures; // of the current page

function check(what, got, wanted) {
	const text = value => JSON.stringify(value, (_, v) => (v && typeof v === "object" && !Array.isArray(v) ? Object.fromEntries(Object.entries(v).sort()) : v));
	if (text(got) !== text(wanted))
		failures.push(`${what}:\n  page   ${difference(got, wanted)}\n  oracle ${difference(wanted, got)}`);
}

/* What a has and b has not, if both are objects. */
function difference(a, b) {
	if (!a || !b || typeof a !== "object")
		return JSON.stringify(a);
	return JSON.stringify(Object.fromEntries(Object.entries(a).filter(([k, v]) => JSON.stringify(v) !== JSON.stringify(b[k])))).slice(0, 400);
}

/* Makes names harmless, as output/profile/label.h does. */
function shown(text) {
	return Array.from(text, c => {
		const p = c.codePointAt(0), bad = p < 0x20 || (p >= 0x7f && p < 0xa0) || p === 0x61c || p === 0x200e || p === 0x200f || (p >= 0x2028 && p <= 0x202e) || (p >= 0x2066 && p <= 0x2069);
		return !bad ? c : p < 0x80 ? "\\x" + p.toString(16).padStart(2, "0") : "\\u" + p.toString(16).padStart(4, "0");
	}).join("");
}

function labelOf(answer, [f, line], byLine) {
	const { name, path: file, line: first } = answer.functions[f], at = byLine ? line : first;
	return (shown(name) || "?") + (file ? ` (${shown(file)}${at ? ":" + at : ""})` : "");
}

/* What pysample.totals() must return for some samples. */
function expected(answer, samples, byLine = false, weight = "weight") {
	const out = { total: 0, samples: samples.length, self: {}, totals: {} };
	for (const sample of samples) {
		const names = sample.stack.length ? sample.stack.map(frame => labelOf(answer, frame, byLine)) : ["[no python frames]"];
		out.total += sample[weight];
		out.self[names.at(-1)] = (out.self[names.at(-1)] ?? 0) + sample[weight];
		const rows = byLine ? names.filter((_, i) => sample.stack[i]?.[1]) : names;
		for (const name of new Set(rows))
			out.totals[name] = (out.totals[name] ?? 0) + sample[weight];
	}
	return out;
}

async function compare(page, answer, what, patch, keep, byLine, weight) {
	const got = await page.evaluate(p => window.pysample.set(p), patch), wanted = expected(answer, answer.samples.filter(keep), byLine, weight);
	for (const key of ["total", "samples", "self"])
		check(`${what}, ${key}`, got[key], wanted[key]);
	const some = totals => Object.fromEntries(Object.entries(totals).filter(([, us]) => us));
	check(`${what}, totals`, some(got.totals), some(wanted.totals));
}

async function compareAll(page, answer) {
	const begin = { view: "flame", threads: null, state: "all", weight: "time", lines: false, from: null, to: null, focus: [], exclude: [], query: "", zoom: 0, path: [] };
	const times = answer.samples.map(s => s.time).sort((a, b) => a - b), from = times[Math.floor(times.length / 5)], to = times[Math.floor(times.length / 2)];
	await compare(page, answer, "all", begin, () => true);
	for (const [state, keep] of Object.entries(STATES))
		await compare(page, answer, "state " + state, { ...begin, state }, keep);
	await compare(page, answer, "brush", { ...begin, from, to }, s => s.time >= from && s.time < to);
	await compare(page, answer, "brush to the end", { ...begin, from, to: times.at(-1) + 1 }, s => s.time >= from);
	await compare(page, answer, "one thread", { ...begin, threads: [1] }, s => s.thread === 1);
	await compare(page, answer, "threads, state and brush", { ...begin, threads: [0, 2], state: "cpu", from, to }, s => s.thread !== 1 && s.thread !== 3 && s.flags & 64 && s.time >= from && s.time < to);
	await compare(page, answer, "CPU time", { ...begin, weight: "cpu" }, () => true, false, "cpu");
	await compare(page, answer, "lines", { ...begin, lines: true }, () => true, true);
	for (const view of ["inverted", "chart", "table", "source"])
		await compare(page, answer, view, { ...begin, view }, () => true);
	await compareZooms(page, answer, begin);
	await compareSearches(page, answer, begin);
}

async function compareZooms(page, answer, begin) {
	const deep = answer.samples.filter(s => s.stack.length > 3).slice(0, 400);
	for (const { stack } of [deep[0], deep[deep.length >> 1], deep.at(-1)]) {
		const path = stack.slice(0, 3).map(frame => labelOf(answer, frame));
		await page.evaluate(p => window.pysample.set(p), begin);
		const got = await page.evaluate(p => window.pysample.zoom(p), path);
		const under = s => path.every((name, i) => s.stack[i] && labelOf(answer, s.stack[i]) === name);
		const wanted = expected(answer, answer.samples.filter(under));
		for (const key of ["total", "samples", "self"])
			check(`zoom to ${path.join(" > ")}, ${key}`, got[key], wanted[key]);
		const leaf = stack.at(-1)[0], tail = await page.evaluate(f => window.pysample.set({ view: "inverted", path: [f] }), leaf);
		check(`inverted zoom to ${leaf}`, tail.self, expected(answer, answer.samples.filter(s => s.stack.at(-1)?.[0] === leaf)).self);
		const only = await page.evaluate(([b, f]) => window.pysample.set({ ...b, focus: [f, f] }), [begin, leaf]);
		check(`only through ${leaf}`, only.self, expected(answer, answer.samples.filter(s => s.stack.some(([f]) => f === leaf))).self);
		const without = await page.evaluate(([b, f]) => window.pysample.set({ ...b, exclude: [f] }), [begin, leaf]);
		check(`without ${leaf}`, without.self, expected(answer, answer.samples.filter(s => !s.stack.some(([f]) => f === leaf))).self);
	}
}

/* A stack counts once however often it matches. Capitals make the search case-sensitive. */
async function compareSearches(page, answer, begin) {
	for (const query of ["script", "<module>|RUN", "lambda|module", "Red", "\\\\x1b", "🐍", "memcpy", "^a;b"]) {
		const got = await page.evaluate(([b, q]) => window.pysample.set({ ...b, query: q }), [begin, query]);
		const pattern = new RegExp(query, /[A-Z]/.test(query.replace(/\\./g, "")) ? "" : "i"), hit = answer.samples.filter(s => s.stack.some(frame => pattern.test(labelOf(answer, frame))));
		check(`search ${query}`, got.matched, { us: hit.reduce((sum, s) => sum + s.weight, 0), samples: hit.length });
	}
}

/* Uses the views and gestures as a person does. Nothing may fail or change a sum. */
async function useIt(page) {
	const before = await page.evaluate(() => window.pysample.set({ view: "flame", zoom: 0, query: "", from: null, to: null, state: "all", lines: false, focus: [], exclude: [], threads: null }));
	for (const key of ["1", "2", "3", "4", "5", "1", "l", "l", "u", "u", "d", "d", "t", "Escape", "ArrowDown", "ArrowDown", "Enter", "Escape", "Escape", "?", "Escape"])
		await page.keyboard.press(key);
	const box = await page.locator("#stacks").boundingBox(), strip = await page.locator("#strip").boundingBox();
	await page.mouse.move(box.x + 60, box.y + 50);
	if (await page.locator("#tip").isHidden())
		failures.push("no tooltip over the flame graph");
	await page.mouse.click(box.x + 60, box.y + 50);
	if ((await page.evaluate(() => window.pysample.state().zoom)) === 0)
		failures.push("a click does not zoom");
	await page.keyboard.press("Home");
	await page.mouse.click(box.x + 60, box.y + 50, { button: "right" });
	if (await page.locator("#menu").isHidden())
		failures.push("no menu at the right button");
	await page.keyboard.press("Escape");
	await page.mouse.move(strip.x + strip.width / 4, strip.y + 20);
	await page.mouse.down();
	await page.mouse.move(strip.x + strip.width / 2, strip.y + 20, { steps: 3 });
	await page.mouse.up();
	await page.waitForTimeout(60);
	if ((await page.evaluate(() => window.pysample.state().from)) === null)
		failures.push("a drag over the time strip selects nothing");
	await page.mouse.dblclick(strip.x + 5, strip.y + 20);
	await page.waitForTimeout(60);
	check("after using it", await page.evaluate(() => window.pysample.set({ state: "all", from: null, to: null })), before);
}

export async function look(browser, npm, file, answerFile) {
	failures = [];
	const page = await browser.newPage({ viewport: { width: 1400, height: 900 } });
	page.on("console", message => ["error", "warning"].includes(message.type()) && failures.push("console: " + message.text()));
	page.on("pageerror", error => failures.push("error: " + error.stack));
	page.on("dialog", dialog => (failures.push("dialog: " + dialog.message()), dialog.dismiss()));
	page.on("request", request => /^(file|blob|data):/.test(request.url()) || failures.push("request: " + request.url()));
	try {
		await page.goto("file://" + path.resolve(file));
		await page.evaluate(() => window.pysample.ready);
		if (answerFile)
			await compareAll(page, JSON.parse(fs.readFileSync(answerFile, "utf8")));
		await useIt(page);
		const strangers = await page.evaluate(() => document.querySelectorAll("img, iframe, object, a, body script[src], dialog script").length);
		check("elements that are not ours", strangers, 0);
	} catch (error) {
		failures.push(String(error.stack ?? error));
	}
	return failures;
}
