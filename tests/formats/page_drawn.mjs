// SPDX-License-Identifier: MIT
// Opens a page of the interactive flame graph and reports what a person sees in its views: rows
// of tables as texts, canvases as the calls that drew them, tooltips as lines. Steps are [state,
// what, argument]: a state for window.pysample.set(), a name in READ below, and its argument. The
// answer is {"seen": [one for each step], "complaints"}.
import { pathToFileURL } from 'node:url';

// In the page, before its own script: each canvas keeps what was drawn since it was cleared.
function keepDrawing() {
  const { prototype } = CanvasRenderingContext2D;
  for (const [name, keep] of [
    ['clearRect', context => { context.canvas.drawn = []; }],
    ['fillRect', (context, x, y, w, h) => context.canvas.drawn?.push({ x, y, w, h, fill: context.fillStyle })],
    ['fillText', (context, text, x, y) => context.canvas.drawn?.push({ text, x, y })],
  ]) {
    const original = prototype[name];
    prototype[name] = function (...values) {
      keep(this, ...values);
      return original.apply(this, values);
    };
  }
}

// In the page: the parts of the steps.
function helpers() {
  const frame = () => new Promise(done => requestAnimationFrame(done));
  const settled = async () => { for (let i = 0; i < 3; i++) await frame(); };
  const texts = (host, selector) => [...host.querySelectorAll(selector)].map(e => e.textContent);

  // All rows, from top to bottom, of a list that has only its visible rows in the document.
  async function* rowsOf(host) {
    let below = -1;
    host.scrollTop = 0;
    for (let before = -1; host.scrollTop !== before; host.scrollTop += host.clientHeight / 2) {
      before = host.scrollTop;
      await settled();
      for (const row of host.querySelectorAll('.row'))
        if (parseFloat(row.style.top) > below) {
          below = parseFloat(row.style.top);
          yield row;
        }
    }
  }
  async function rows(host, read) {
    const found = [];
    for await (const row of rowsOf(host))
      found.push(read(row));
    return found;
  }
  async function click(host, is) {
    for await (const row of rowsOf(host))
      if (is(row)) {
        row.click();
        return settled();
      }
    throw new Error('no such row');
  }

  // The lines of the tooltip when the pointer is at a place of a canvas; empty without a tooltip.
  function tip(canvas, x, y) {
    const { left, top } = canvas.getBoundingClientRect(), tip = document.getElementById('tip');
    canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: left + x, clientY: top + y }));
    if (tip.hidden)
      return [];
    return [...tip.children].flatMap(e => (e.rows ? [...e.rows].map(r => texts(r, 'th, td')) : [e.textContent]));
  }

  // The blocks of frames, each with its text, and at most nrTips of them with their tooltips.
  function drawn(host, nrTips) {
    const canvas = host.querySelector('canvas'), calls = canvas.drawn ?? [], blocks = [], others = [];
    const few = getComputedStyle(document.documentElement).getPropertyValue('--few').trim();
    for (const { text, ...call } of calls) {
      const last = blocks.at(-1);
      if (text !== undefined && last && call.y === last.y + 10 && call.x >= last.x && call.x <= last.x + last.w + 1)
        last.text ??= text;
      else if (text !== undefined)
        others.push([text, call.y]);
      else if (call.h === 19)
        blocks.push({ ...call, few: call.fill === few });
    }
    const step = Math.max(1, Math.ceil(blocks.length / nrTips));
    for (let i = 0; i < blocks.length; i += step) {
      const at = [Math.floor(blocks[i].x + blocks[i].w / 2), Math.floor(blocks[i].y + 9)];
      Object.assign(blocks[i], { at, tip: tip(canvas, ...at) });
    }
    return { width: host.clientWidth, height: host.clientHeight, scroll: host.scrollTop, blocks, others };
  }

  const READ = {
    // argument: none
    table: () => rows(document.querySelector('#table .list'), row => ({
      label: row.title, self: texts(row, '.c-self b, .c-self span:last-child'),
      total: texts(row, '.c-total b, .c-total span:last-child'), samples: row.querySelector('.c-samples').textContent,
    })),
    // argument: the label of a function, whose row is clicked
    calls: async label => {
      await click(document.querySelector('#table .list'), row => row.title === label);
      return ['callers', 'callees'].map(id => drawn(document.getElementById(id), 2000));
    },
    // argument: none
    files: () => rows(document.querySelector('#source .files'), row => [row.title, ...texts(row, '.num')]),
    // argument: [path, line], which are clicked; with line 0 only the path is
    source: async ([path, line]) => {
      const code = document.querySelector('#source .code');
      await click(document.querySelector('#source .files'), row => row.title === path);
      if (line)
        await click(code, row => row.querySelector('.no')?.textContent === String(line));
      return {
        title: document.querySelector('#source .title').textContent,
        lines: await rows(code, row => [...texts(row, '.num, .no'), row.title, row.matches('.here')]),
        around: [...document.querySelectorAll('#source .around section')].map(section => (
          [...section.querySelectorAll('button')].map(b => [b.querySelector('.num').textContent, b.title]))),
      };
    },
    // argument: the scroll positions to visit, in px
    chart: async scrolls => {
      const host = document.getElementById('chart'), seen = [];
      for (const scroll of scrolls) {
        host.scrollTop = scroll;
        await settled();
        seen.push(drawn(host, 200));
      }
      return seen;
    },
  };
  // What a click on a line of the export menu saves.
  READ.saved = async name => {
    const { createObjectURL } = URL, { click } = HTMLAnchorElement.prototype;
    let saved;
    URL.createObjectURL = blob => { saved = blob; return ''; };
    HTMLAnchorElement.prototype.click = () => {};
    document.getElementById('export').click();
    [...document.querySelectorAll('#menu button')].find(b => b.textContent.startsWith(name)).click();
    Object.assign(URL, { createObjectURL });
    Object.assign(HTMLAnchorElement.prototype, { click });
    return saved.text();
  };
  window.seen = async ([state, what, argument]) => {
    window.pysample.set(state);
    await settled();
    return READ[what](argument);
  };
}

export async function look(browser, npm, file, steps) {
  const complaints = [];
  const page = await browser.newPage({ viewport: { width: 1400, height: 1000 } });
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(message.text());
  });
  page.on('pageerror', error => complaints.push(String(error)));
  await page.addInitScript(keepDrawing);
  await page.goto(String(pathToFileURL(file)));
  await page.evaluate(() => window.pysample.ready);
  await page.evaluate(helpers);
  const seen = [];
  for (const step of steps)
    seen.push(await page.evaluate(step => window.seen(step), step));
  return { seen, complaints };
}
