// SPDX-License-Identifier: MIT
/*
 * Makes pages of the interactive flame graph from invented profiles, without the C writer, and
 * the answers that must be read off them.
 *
 * usage: page_fixture.mjs KIND OUT.html VIEWER LOADER
 *
 * VIEWER and LOADER are written by `output/assets/bundle.py --parts`. KIND is nasty (names that
 * try to be markup, recursion, one function at several lines), demo, diff or deep (a stack of
 * 1,000,000 frames). For nasty, an OUT.json beside OUT.html has every sample, for page_check.mjs.
 */
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import zlib from "node:zlib";

const ORIGINS = ["application", "site-packages", "standard library", "native", "jit", "gc", "kernel", "task", "other"];
const KINDS = ["python", "collector", "native", "jit", "kernel", "task"];
const RUNNING = 65, HAS_CPU = 128, GIL = 1, WAITS = 4, GC = 8, EXCEPTION = 16, MEASURED = 32, ON_CPU = 64;

/* Pseudo-random numbers that are the same in every run. */
export function random(seed) {
	let state = seed >>> 0;
	return () => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return state / 2 ** 32;
	};
}

function leb(values, signed) {
	const out = [];
	for (let value of values) {
		if (signed)
			value = value < 0 ? -2 * value - 1 : 2 * value;
		for (; value > 127; value = Math.floor(value / 128))
			out.push((value % 128) | 128);
		out.push(value);
	}
	return Uint8Array.from(out);
}

/* As specified in output/encoding/base91.h. */
function base91(bytes) {
	let text = "", bits = 0, nr = 0;
	const put = digit => (text += String.fromCharCode(35 + digit).replace("<", "~"));
	for (const byte of bytes) {
		bits |= byte << nr;
		nr += 8;
		if (nr < 13)
			continue;
		put((bits & 8191) % 91);
		put(Math.floor((bits & 8191) / 91));
		bits >>= 13;
		nr -= 13;
	}
	if (nr)
		put(bits % 91);
	if (nr > 6)
		put(Math.floor(bits / 91));
	return text;
}

/* The greatest common divisor, at least 1. */
const unitOf = values => values.reduce((a, b) => {
	for (b = Math.abs(b); b; )
		[a, b] = [b, a % b];
	return a;
}, 0) || 1;

const deltas = values => values.map((v, i) => (i ? v - values[i - 1] : v));

/* Numbers that are small for frequent values, and the values that they stand for. */
function ranked(values) {
	const counts = new Map();
	for (const value of values)
		counts.set(value, (counts.get(value) ?? 0) + 1);
	const rows = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a) || a - b);
	const numbers = new Map(rows.map((value, i) => [value, i]));
	return { rows, numbers: values.map(value => numbers.get(value)) };
}

/* A profile that is built call by call. */
export class Builder {
	constructor() {
		Object.assign(this, { strings: [], stringIds: new Map(), functions: [], frames: [], frameIds: new Map(), nodes: [], nodeIds: new Map() });
		Object.assign(this, { threads: [], ticks: [], samples: [], processes: [], base: new Map(), sources: [], runs: [], baseRuns: [] });
	}
	string(text) {
		if (!this.stringIds.has(text))
			this.stringIds.set(text, this.strings.push(text) - 1);
		return this.stringIds.get(text);
	}
	func(name, path, line, origin = "application", kind = "python") {
		return this.functions.push({ name, path, line, origin, kind }) - 1;
	}
	node(parent, func, line) {
		const frameKey = func + ":" + line;
		if (!this.frameIds.has(frameKey))
			this.frameIds.set(frameKey, this.frames.push({ func, line }) - 1);
		const frame = this.frameIds.get(frameKey), key = parent * 2 ** 24 + frame;
		if (!this.nodeIds.has(key))
			this.nodeIds.set(key, this.nodes.push({ parent, frame }) - 1);
		return this.nodeIds.get(key);
	}
	/* The node of [[function, line], …], outermost first; -1 for an empty stack. */
	stack(frames) { return frames.reduce((parent, [func, line]) => this.node(parent, func, line), -1); }
	thread(name, main = false, process = 0) {
		return this.threads.push({ process, tid: 4242 + this.threads.length, name, main, interpreter: 0 }) - 1;
	}
	/* tick is an index. cpu is in us, or undefined if it was not measured. */
	sample(thread, tick, node, weight, flags, cpu) { this.samples.push({ thread, tick, node, weight, flags, cpu }); }
	columns() {
		const { functions, frames, nodes, ticks } = this, by = [...this.threads.keys(), this.threads.length].map(t => this.samples.filter(s => s.thread === t));
		const each = f => by.flatMap(list => list.map((s, i) => f(s, i ? list[i - 1] : null)));
		const stacks = ranked(each(s => s.node + 1));
		let nextFrame = 0; // the first that no node has used yet
		const base = [...this.base].sort((a, b) => a[0] - b[0]), out = [
			["function.name", "u", functions.map(f => this.string(f.name))], ["function.path", "u", functions.map(f => this.string(f.path))],
			["function.line", "s", deltas(functions.map(f => f.line))], ["function.kind", "u", functions.map(f => KINDS.indexOf(f.kind))],
			["function.origin", "u", functions.map(f => ORIGINS.indexOf(f.origin))], ["frame.function", "u", frames.map(f => f.func)],
			["frame.line", "s", frames.map(f => f.line - functions[f.func].line)], ["node.parent", "u", nodes.map((n, i) => (n.parent < 0 ? 0 : i - n.parent))],
			["node.frame", "u", nodes.map(n => (n.frame === nextFrame ? nextFrame++ * 0 : nextFrame - n.frame))], ["stack.node", "u", stacks.rows], ["tick.time", "u", [0, ...deltas(ticks).slice(1)]], ["thread.count", "u", by.map(list => list.length)],
			["sample.tick", "u", each((s, before) => s.tick - (before ? before.tick : 0))], ["sample.stack", "u", stacks.numbers],
			["sample.weight", "s", each((s, before) => s.weight - (before ? ticks[s.tick] - ticks[before.tick] : 0))], ["sample.flags", "u", each(s => s.flags | (s.cpu && !(s.flags & ON_CPU) ? HAS_CPU : 0))],
		];
		if (this.samples.some(s => s.flags & MEASURED))
			out.push(["sample.cpu", "s", each(s => (s.flags & ON_CPU || s.cpu ? (s.cpu ?? 0) - ((s.flags & RUNNING) === RUNNING ? s.weight : 0) : [])).flat()]);
		if (base.length)
			out.push(["base.node", "u", deltas(base.map(b => b[0]))], ["base.weight", "u", base.map(b => b[1].us)], ["base.samples", "u", base.map(b => b[1].n)]);
		return out;
	}
	payload() {
		const parts = this.columns().map(([name, type, values]) => {
			const unit = unitOf(values);
			return { name, type, unit, count: values.length, data: leb(values.map(v => v / unit), type === "s") };
		});
		const meta = {
			version: 1, pysample: "0.1.0", mode: "wall", unit: "us", has_base: this.base.size > 0, start_ms: 1790000000000, first_us: this.ticks[0], runs: this.runs,
			base_runs: this.baseRuns, strings: this.strings, processes: this.processes, process_roots: [], thread_roots: [], approximate: 0, threads: this.threads, kinds: KINDS, origins: ORIGINS,
			sources: this.sources.map(s => ({ ...s, path: this.string(s.path) })),
			columns: parts.map(({ name, type, unit, count, data }) => ({ name, type, count, bytes: data.length, unit })),
		};
		const text = Buffer.from(JSON.stringify(meta)), size = Buffer.alloc(4);
		size.writeUInt32LE(text.length);
		return Buffer.concat([size, text, ...parts.map(p => p.data)]);
	}
}

export function pageOf(payload, viewer, loader) {
	const policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:";
	return `<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="${policy}">\n` +
		`<meta name="viewport" content="width=device-width">\n<title>pysample</title>\n<noscript>This page needs JavaScript.</noscript>\n` +
		`<body>\n<script type="text/plain" id="pysample-page">${base91(viewer)}</script>\n<script type="text/plain" id="pysample-data">${base91(zlib.gzipSync(payload, { level: 9 }))}</script>\n` +
		`<script>${loader}</script>\n`;
}

const run = (samples, ticks, extra = {}) => ({
	pysample: "0.1.0", arguments: "attach 4242 -r 1000 -d 4 -o profile.html", host: "build-7", command_line: "python3 -m orders.serve --port 8080 --workers 4", pid: "4242", python: "3.13.2",
	mode: "wall", requested_hz: "1000", achieved_hz: "998.5", wall_s: "4.006", ticks: String(ticks), samples: String(samples), cached: "0", writes: "0", late_ticks: "6", failed_ticks: "0",
	"lost.moved": "11", "lost.lock": "2", "lost.late": "3", "lost.unfinished": "0", "lost.code": "0", "lost.too_deep": "0", ...extra,
});

const NASTY = ["</script><script>document.title='owned'</script>", "<img src=x onerror=alert(1)>", "a;b c 12", "q\"'`${1}", "line\nbreak\ttab", "\u001b[31mred\u001b[0m", "🐍.run<locals>", "\u202eevil\u202c", "<module>", "<lambda>", "", "\\x0a", "*+?[("];

/* Every sample is in the answer, too, as the page must count it. */
function nasty() {
	const b = new Builder(), next = random(7);
	b.processes = [{ pid: 4242, name: "python3 <b>app.py</b>", command_line: "python3 <b>app.py</b> --x=\"1\"" }, { pid: 4243, name: "python3 child.py", command_line: "python3 child.py" }];
	const threads = ["MainThread", "worker <i>1</i>", "worker <i>1</i>", "\u202ethread\n"].map((name, i) => b.thread(name, i === 0, i < 3 ? 0 : 1));
	const functions = NASTY.map((name, i) => b.func(name, ["/srv/app/<b>.py", "/srv/app/other;file 1.py", ""][i % 3], 10 * i, ORIGINS[i % 4]));
	const gc = b.func("<GC>", "", 0, "gc", "collector"), native = b.func("memcpy", "libc.so.6", 0, "native", "native");
	b.func("run", "/a.py", 5);
	b.func("run", "/b.py", 5);
	functions.push(functions.length + 2, functions.length + 3);
	b.ticks = Array.from({ length: 3000 }, (_, i) => 1000 * i + Math.floor(next() * 400));
	b.ticks[2999] += 2 ** 33;
	const stacks = Array.from({ length: 150 }, () => {
		const frames = Array.from({ length: Math.floor(next() * 12) }, () => {
			const f = functions[Math.floor(next() ** 2 * functions.length)];
			return [f, next() < 0.1 ? 0 : b.functions[f].line + Math.floor(next() * 4)];
		});
		if (frames.length && next() < 0.2)
			frames.push(next() < 0.5 ? [gc, 0] : [native, 0]);
		return frames;
	});
	const answer = [];
	for (const thread of threads) {
		let before = -1;
		for (let tick = thread; tick < b.ticks.length; tick += next() < 0.05 ? 3 : 1) {
			const frames = stacks[Math.floor(next() ** 2 * stacks.length)], isGc = frames.some(([f]) => f === gc);
			const cpu = next() < 0.6 ? Math.floor(next() * 1000) + 1 : 0;
			const flags = MEASURED | (cpu && next() < 0.9 ? ON_CPU : 0) | (next() < 0.3 ? GIL : 0) | (next() < 0.1 ? WAITS : 0) | (isGc ? GC : 0) | (next() < 0.05 ? EXCEPTION : 0);
			const weight = before < 0 ? 1000 : b.ticks[tick] - b.ticks[before] - (next() < 0.1 ? 50 : 0);
			b.sample(thread, tick, b.stack(frames), weight, flags, cpu);
			answer.push({ thread, time: b.ticks[tick], weight, cpu, flags, stack: frames });
			before = tick;
		}
	}
	b.runs = [run(answer.length, 3000, { command_line: b.processes[0].command_line, "lost.moved": "400" })];
	b.sources = [{ path: "/srv/app/<b>.py", first: 1, lines: Array.from({ length: 140 }, (_, i) => `    x = "</script><b>" + f(${i})  # é`) }];
	const names = b.functions.map(f => ({ name: f.name, path: f.path, line: f.line }));
	return { builder: b, answer: { functions: names, samples: answer } };
}

const CODE = ["def {name}(self, items):", '    """Work on what came in."""', "    result = {}", "    for key, value in sorted(items.items()):", "        if not self.accepts(key):",
	"            continue  # never ours", "        result[key] = self.convert(value, strict=True)", "        self.seen += 1", "    with self.lock:", "        self.store.update(result)",
	"    log.debug(\"%d items of %s\", len(result), self.name)", "    return result", "", ""];

/* A realistic program: a server with workers, a database, JSON, the collector. */
function demo(compared) {
	const b = new Builder(), next = random(3), app = "/srv/orders/", lib = "/usr/lib/python3.13/", site = "/srv/venv/lib/python3.13/site-packages/";
	b.processes = [{ pid: 4242, name: "python3 -m orders.serve", command_line: "python3 -m orders.serve --port 8080 --workers 4" }];
	const files = new Map(), f = (name, path, origin, kind) => {
		const line = (files.get(path) ?? 8) + 1;
		files.set(path, line + CODE.length - 1);
		if (kind !== "native" && kind !== "collector" && kind !== "kernel")
			b.sources.push({ path, first: line, lines: CODE.map(text => text.replace("{name}", name.split(".").pop())) });
		return b.func(name, path, kind === "native" || kind === "kernel" || kind === "collector" ? 0 : line, origin, kind);
	};
	const A = (name, file) => f(name, app + file, "application"), L = (name, file) => f(name, lib + file, "standard library"), S = (name, file) => f(name, site + file, "site-packages");
	const main = A("<module>", "serve.py"), serve = A("Server.serve_forever", "serve.py"), poll = L("DefaultSelector.select", "selectors.py");
	const bootstrap = L("Thread._bootstrap", "threading.py"), inner = L("Thread._bootstrap_inner", "threading.py"), runner = L("Thread.run", "threading.py");
	const work = L("_worker", "concurrent/futures/thread.py"), task = L("_WorkItem.run", "concurrent/futures/thread.py"), get = L("Queue.get", "queue.py");
	const handle = A("Handler.handle", "handlers.py"), checkout = A("checkout", "handlers.py"), search = A("search", "handlers.py"), price = A("price_of", "pricing.py"), tax = A("Taxes.rate", "pricing.py");
	const walk = A("walk_tree", "catalog.py"), filter = A("<lambda>", "catalog.py"), loads = L("loads", "json/__init__.py"), decode = L("JSONDecoder.decode", "json/decoder.py"), scan = L("JSONDecoder.raw_decode", "json/decoder.py");
	const dumps = L("dumps", "json/__init__.py"), encode = L("JSONEncoder.iterencode", "json/encoder.py"), query = S("Session.execute", "sqlalchemy/orm/session.py"), compile_ = S("Compiled.compile", "sqlalchemy/sql/compiler.py");
	const fetch = S("CursorResult.fetchall", "sqlalchemy/engine/cursor.py"), cursor = S("Cursor.execute", "psycopg/cursor.py"), wait = S("wait_selector", "psycopg/waiting.py"), validate = S("BaseModel.model_validate", "pydantic/main.py");
	const core = f("pydantic_core::validate", "_pydantic_core.so", "native", "native"), memcpy = f("memmove", "libc.so.6", "native", "native"), sha = f("sha256_update", "_hashlib.so", "native", "native");
	const gc = f("<GC>", "", "gc", "collector"), read = f("__x64_sys_read", "[kernel]", "kernel", "kernel"), match = L("Pattern.match", "re/__init__.py"), jit = f("<jit trace>", "", "jit", "jit");
	const at = (func, k) => [func, b.functions[func].line ? b.functions[func].line + [3, 6, 4, 7, 9, 6, 10][k % 7] : 0];
	const pool = [bootstrap, inner, runner, work].map(func => at(func, 0)), job = [...pool, at(task, 1), at(handle, 1)];
	const tree = n => Array.from({ length: n }, (_, i) => at(walk, i % 2));
	const kinds = [
		[60, [...job, at(checkout, 1), at(price, 0)]], [110, [...job, at(checkout, 1), at(price, 1), at(tax, 1)]], [40, [...job, at(checkout, 1), at(price, 1), at(tax, 0), at(jit, 0)]],
		[90, [...job, at(search, 0), ...tree(3), at(filter, 0)]], [70, [...job, at(search, 0), ...tree(6)]], [55, [...job, at(search, 0), ...tree(8), at(filter, 0), at(match, 1)]],
		[80, [...job, at(checkout, 3), at(query, 1), at(compile_, 1)]], [140, [...job, at(checkout, 3), at(query, 3), at(cursor, 1), at(wait, 1)]], [45, [...job, at(checkout, 3), at(query, 3), at(fetch, 1), at(memcpy, 0)]],
		[35, [...job, at(search, 4), at(query, 3), at(cursor, 1), at(wait, 1), at(read, 0)]], [75, [...job, at(checkout, 0), at(loads, 1), at(decode, 1), at(scan, 1)]], [40, [...job, at(checkout, 0), at(validate, 1), at(core, 0)]],
		[65, [...job, at(checkout, 4), at(dumps, 1), at(encode, 1)]], [30, [...job, at(checkout, 4), at(dumps, 1), at(encode, 3), at(gc, 0)]], [25, [...job, at(handle, 3), at(sha, 0)]], [90, [...pool, at(get, 4)]],
	];
	const sum = kinds.reduce((s, k) => s + k[0], 0), threads = [b.thread("MainThread", true), ...[0, 1, 2, 3].map(i => b.thread(`ThreadPoolExecutor-0_${i}`)), b.thread("metrics-flush")];
	b.ticks = Array.from({ length: 4000 }, (_, i) => 1000 * i + Math.floor(next() * 60));
	const waiting = b.stack([at(main, 1), at(serve, 1), at(poll, 1)]), loop = b.stack([at(main, 1), at(serve, 3)]);
	for (const thread of threads) {
		let left = 0, node = -1, flags = 0, before = null;
		b.ticks.forEach((time, tick) => {
			if (left-- <= 0) {
				const busy = 0.35 + 0.5 * Math.abs(Math.sin(tick / 600 + thread / 3));
				left = Math.floor(next() ** 3 * 40);
				let pick = next() * sum, kind = 0;
				while ((pick -= kinds[kind][0]) > 0)
					kind++;
				const idle = thread === 5 || (thread && next() > busy);
				node = thread === 0 ? (next() < 0.8 ? waiting : loop) : idle ? (thread === 5 ? -1 : b.stack([...pool, at(get, 4)])) : b.stack(kinds[kind][1]);
				const on = thread === 0 ? node === loop : !idle && ![7, 9, 15].includes(kind);
				flags = MEASURED | (on ? ON_CPU | (next() < 0.7 ? GIL : 0) : 0) | (kind === 13 && !idle && thread ? GC : 0) | (kind === 11 && thread ? EXCEPTION : 0);
			}
			const weight = before === null ? 1000 : time - before;
			before = time;
			b.sample(thread, tick, node, weight, flags, flags & ON_CPU ? Math.floor(weight * 0.97) : 0);
			if (compared && node >= 0) {
				const old = b.base.get(node) ?? { us: 0, n: 0 }, much = 0.5 + random(node * 7919)() * 1.1;
				b.base.set(node, { us: old.us + Math.round(weight * much), n: old.n + 1 });
			}
		});
	}
	if (compared) {
		const gone = A("LegacyCache.lookup", "cache.py");
		b.base.set(b.stack([...job, at(checkout, 1), at(gone, 1)]), { us: 800000, n: 800 });
		b.baseRuns = [run(b.samples.length, 4000)];
	}
	b.runs = [run(b.samples.length, 4000)];
	return { builder: b };
}

/* Samples of a stack of 1,000,000 frames, and of half of it, in turn. */
function deep() {
	const b = new Builder(), f = b.func("fall", "/srv/app/deep.py", 1), g = b.func("land", "/srv/app/deep.py", 9);
	b.processes = [{ pid: 1, name: "python3 deep.py", command_line: "python3 deep.py" }];
	b.runs = [run(10, 10)];
	b.thread("MainThread", true);
	let node = -1;
	for (let i = 0; i < 1000000; i++)
		node = b.node(node, i % 1000 === 999 ? g : f, 3);
	b.ticks = Array.from({ length: 10 }, (_, i) => 1000 * i);
	b.ticks.forEach((_, tick) => b.sample(0, tick, tick % 2 ? node : 500000, 1000, MEASURED | ON_CPU, 900));
	return { builder: b };
}

export function make(kind) {
	return { nasty, demo: () => demo(false), diff: () => demo(true), deep }[kind]();
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
	const [kind, out, viewer, loader] = process.argv.slice(2), { builder, answer } = make(kind);
	fs.writeFileSync(out, pageOf(builder.payload(), fs.readFileSync(viewer), fs.readFileSync(loader, "utf8")));
	if (answer)
		fs.writeFileSync(out.replace(/\.html$/, "") + ".json", JSON.stringify(answer));
}
