// SPDX-License-Identifier: MIT
// Uses the heatmap of a page of the interactive flame graph with a real pointer and keyboard. Steps
// are arrays, of a name in DO below and its arguments; a cell is [column, row]. The answer is
// {"seen": [what there is after each step], "complaints", "requests"}.
import { pathToFileURL } from 'node:url';

const AXIS = 16; // px below the cells
const ROWS = 50;
const FIELD = '#heatmap .stage';

// The middle of a cell on the screen, where nothing is scrolled.
async function middle(page, nrColumns, [column, row]) {
  const box = await page.locator(FIELD).boundingBox();
  return [box.x + box.width * (column + 0.5) / nrColumns, box.y + (box.height - AXIS) * (row + 0.5) / ROWS];
}

async function drag(page, from, to, keys) {
  for (const key of keys)
    await page.keyboard.down(key);
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move(...to, { steps: 3 });
  await page.mouse.up();
  for (const key of keys)
    await page.keyboard.up(key);
}

const DO = {
  // Returns when the page has read it.
  fragment: (page, nr, fragment) => page.evaluate(fragment => new Promise(done => {
    addEventListener('hashchange', done, { once: true });
    location.hash = fragment;
  }), fragment),
  set: (page, nr, patch) => page.evaluate(patch => { window.pysample.set(patch); }, patch),
  hover: async (page, nr, cell) => page.mouse.move(...await middle(page, nr, cell)),
  click: async (page, nr, cell, ...keys) => {
    const place = await middle(page, nr, cell);
    await drag(page, place, place, keys);
  },
  drag: async (page, nr, from, to, ...keys) => (
    drag(page, await middle(page, nr, from), await middle(page, nr, to), keys)),
  focus: page => page.locator(FIELD).focus(),
  press: async (page, nr, ...keys) => { for (const key of keys) await page.keyboard.press(key); },
  // Only one process, in the panel of threads and processes.
  only: async (page, nr, process) => {
    await page.locator('#threads').click();
    const row = page.locator('#panel .row.head', { hasText: process });
    await row.hover();
    await row.getByRole('button').click();
    await page.keyboard.press('Escape');
  },
};

// In the page: what a person sees, and the sums of what is shown.
async function whatIsSeen() {
  for (let i = 0; i < 3; i++)
    await new Promise(done => requestAnimationFrame(done));
  const texts = selector => [...document.querySelectorAll(selector)].map(e => e.textContent);
  const { total, samples, base, self, hidden } = window.pysample.totals(), tip = document.getElementById('tip');
  return {
    total, samples, base, self, hidden, chips: texts('#crumbs .chip'), legend: texts('#legend > span'),
    scale: texts('#heatmap .cells')[0], colours: texts('#heatmap .colours span'),
    tip: tip.hidden ? null : Object.fromEntries(texts('#tip tr').map((_, i) => texts(`#tip tr:nth-child(${i + 1}) td`))),
  };
}

export async function look(browser, npm, file, nrColumns, steps) {
  const complaints = [], requests = [];
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(message.text());
  });
  page.on('pageerror', error => complaints.push(String(error)));
  page.on('request', request => requests.push(request.url()));
  await page.goto(String(pathToFileURL(file)));
  await page.evaluate(() => window.pysample.ready);
  await page.keyboard.press('h');
  await page.evaluate(whatIsSeen);
  const seen = [];
  for (const [name, ...wanted] of steps) {
    await DO[name](page, nrColumns, ...wanted);
    seen.push(await page.evaluate(whatIsSeen));
  }
  return { seen, complaints, requests };
}
