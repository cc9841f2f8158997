// SPDX-License-Identifier: MIT
// Measures how long a page takes to show its flame graph, in a headless browser:
//   node open_page.mjs NPM_FOLDER PAGE RUNS > JSON
// [ms from the start of the navigation, ...]
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [npm, file, nrRuns] = process.argv.slice(2);
const { chromium } = createRequire(path.join(npm, 'from.js'))('playwright-core');
const POLL_MS = 5;

const browser = await chromium.launch({
  executablePath: process.env.PYSAMPLE_CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox'],
});
try {
  const times = [];
  for (let i = 0; i < Number(nrRuns); i++) {
    const page = await browser.newPage();
    await page.goto(pathToFileURL(path.resolve(file)).href, { waitUntil: 'commit' });
    while (!await page.evaluate('window.pysample?.ready.then(() => true)'))
      await new Promise(resolve => setTimeout(resolve, POLL_MS));
    times.push(await page.evaluate('performance.now()'));
    await page.close();
  }
  process.stdout.write(JSON.stringify(times));
} finally {
  await browser.close();
}
