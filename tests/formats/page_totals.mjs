// SPDX-License-Identifier: MIT
// Opens a page of the interactive flame graph and asks window.pysample for its totals. Steps are
// ["set", {...}] and ["zoom", [label, ...]]; the answer is
// {"totals": [one for each step], "facts": [of the header], "title", "complaints": [...], "requests": [...]}.
import { pathToFileURL } from 'node:url';

export async function look(browser, npm, file, steps) {
  const complaints = [];
  const requests = [];
  const page = await browser.newPage({ viewport: { width: 1400, height: 800 } });
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type()))
      complaints.push(message.text());
  });
  page.on('pageerror', error => complaints.push(String(error)));
  page.on('dialog', dialog => { complaints.push(dialog.message()); dialog.dismiss(); });
  page.on('request', request => requests.push(request.url()));
  await page.goto(String(pathToFileURL(file)));
  await page.evaluate(() => window.pysample.ready);
  const totals = [];
  for (const [what, argument] of steps)
    totals.push(await page.evaluate(([what, argument]) => {
      const { self, totals, ...others } = window.pysample[what](argument);
      return { ...others, self: Object.entries(self), totals: Object.entries(totals) };
    }, [what, argument]));
  const facts = await page.evaluate(() => [...document.querySelectorAll('#facts > *')].map(fact => fact.textContent));
  // Draw every view once, with every name in it.
  for (const view of ['flame', 'inverted', 'chart', 'table', 'source'])
    await page.evaluate(view => new Promise(drawn => {
      window.pysample.set({ view });
      requestAnimationFrame(() => requestAnimationFrame(drawn));
    }), view);
  const title = await page.title();
  const markup = await page.evaluate(() => document.querySelectorAll('b b, img, iframe').length);
  return { totals, facts, title, markup, complaints, requests };
}
