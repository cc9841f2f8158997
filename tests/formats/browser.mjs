// SPDX-License-Identifier: MIT
// Opens pages for scripts in a headless Chromium, which starts once for all of them:
//   node browser.mjs NPM_FOLDER
// Each line of stdin is a JSON array: a script's path, and the arguments of its look() after the
// browser and NPM_FOLDER. The line of stdout for it is {"answer": result} or {"error": text}. A
// script may export other flags, for a Chromium of its own. Its pages are closed after it has
// looked at them. The program ends with stdin. The browser is $PYSAMPLE_CHROMIUM, else
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

async function browserWith(flags) {
  const key = flags.join(' ');
  if (!browsers.has(key))
    browsers.set(key, await chromium.launch({
      executablePath: process.env.PYSAMPLE_CHROMIUM || '/usr/bin/chromium',
      args: ['--no-sandbox', ...flags],
    }));
  return browsers.get(key);
}

async function answerTo([script, ...wanted]) {
  const { look, flags = AT_ONCE } = await import(pathToFileURL(script));
  const browser = await browserWith(flags);
  try {
    return { answer: await look(browser, npm, ...wanted) };
  } finally {
    await Promise.all(browser.contexts().map(context => context.close()));
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const answer = await answerTo(JSON.parse(line)).catch(error => ({ error: String(error?.stack ?? error) }));
  process.stdout.write(JSON.stringify(answer) + '\n');
}
await Promise.all([...browsers.values()].map(browser => browser.close()));
