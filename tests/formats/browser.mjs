// SPDX-License-Identifier: MIT
// Opens pages for scripts in a headless Chromium, which starts once for all of them:
//   node browser.mjs NPM_FOLDER
// Each line of stdin is a JSON array: a script's path, and the arguments of its look() after the
// browser and NPM_FOLDER. The line of stdout for it is {"answer": result} or {"error": text}. A
// script may export other flags, for a Chromium of its own. Its pages are closed after it has
// looked at them. If a look does not end although its pages still run scripts, Chromium has stopped
// drawing them: the look is made once more, in a new Chromium. A page whose script does not end
// is an error. The program ends with stdin. The browser is $PYSAMPLE_CHROMIUM, else
// /usr/bin/chromium.
import path from 'node:path';
import { createRequire } from 'node:module';
import readline from 'node:readline';
import { pathToFileURL } from 'node:url';

const [npm] = process.argv.slice(2);
const { chromium } = createRequire(path.join(npm, 'from.js'))('playwright-core');
const browsers = new Map(); // by their flags
// Our pages draw when a step wants it: at once, not 60 times a second.
const AT_ONCE = ['--disable-frame-rate-limit', '--disable-gpu-vsync'];
const LOOK_MS = 300_000;
const PROBE_MS = 30_000;

async function browserWith(flags) {
  const key = flags.join(' ');
  if (!browsers.has(key))
    browsers.set(key, await chromium.launch({
      executablePath: process.env.PYSAMPLE_CHROMIUM || '/usr/bin/chromium',
      args: ['--no-sandbox', ...flags],
    }));
  return browsers.get(key);
}

/* What the promise becomes, or null if it takes longer than ms. */
async function within(ms, promise) {
  let timer;
  const expired = new Promise(expire => (timer = setTimeout(expire, ms, null)));
  try {
    return await Promise.race([promise, expired]);
  } finally {
    clearTimeout(timer);
  }
}

async function lookWith(look, flags, wanted) {
  const browser = await browserWith(flags);
  try {
    return { answer: await look(browser, npm, ...wanted) };
  } finally {
    await Promise.all(browser.contexts().map(context => context.close()));
  }
}

/* Give a browser up. Returns whether all its pages still run scripts. */
async function abandon(flags) {
  const key = flags.join(' '), browser = browsers.get(key);
  const pages = browser?.contexts().flatMap(context => context.pages()) ?? [];
  browsers.delete(key);
  const answers = await within(PROBE_MS, Promise.all(pages.map(page => page.evaluate('true').catch(() => true))));
  browser?.close().catch(() => {}); // not awaited: it may not end either
  return answers !== null;
}

async function answerTo([script, ...wanted]) {
  const { look, flags = AT_ONCE } = await import(pathToFileURL(script));
  for (let looks = 0; looks < 2; looks++) {
    const answer = await within(LOOK_MS, lookWith(look, flags, wanted));
    if (answer)
      return answer;
    if (!await abandon(flags))
      throw new Error(`a page's script did not end within ${LOOK_MS / 1000} s`);
    console.error(`${script}: Chromium did not draw within ${LOOK_MS / 1000} s`);
  }
  throw new Error('Chromium did not draw, twice');
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const answer = await answerTo(JSON.parse(line)).catch(error => ({ error: String(error?.stack ?? error) }));
  process.stdout.write(JSON.stringify(answer) + '\n');
}
await Promise.all([...browsers.values()].map(browser => browser.close()));
process.exit(); // kills the browsers that did not close
