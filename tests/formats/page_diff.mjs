// SPDX-License-Identifier: MIT
// Opens a page that compares and reads its table: for each function {name, mark, change}, the mark
// that it is new or gone, and the change of its self share.
import { pathToFileURL } from 'node:url';

export async function look(browser, npm, file) {
  const page = await browser.newPage({ viewport: { width: 1400, height: 800 } });
  await page.goto(String(pathToFileURL(file)));
  return await page.evaluate(async () => {
    await window.pysample.ready;
    await new Promise(drawn => {
      window.pysample.set({ view: 'table' });
      requestAnimationFrame(() => requestAnimationFrame(drawn));
    });
    const text = (row, selector) => row.querySelector(selector)?.textContent ?? '';
    return [...document.querySelectorAll('.row')].map(row => ({
      name: text(row, '.c-name b'), mark: text(row, '.c-name em'), change: text(row, '.c-dself'),
    }));
  });
}
