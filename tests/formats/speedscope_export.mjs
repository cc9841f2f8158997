// SPDX-License-Identifier: MIT
// Opens a file in speedscope, as its users do, and writes what it made of it:
//   node speedscope_export.mjs NPM_FOLDER FILE > JSON
// {"export": the profile as speedscope exports it again, "complaints": [...], "requests": [...]}
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [npm, file] = process.argv.slice(2);
const { chromium } = createRequire(path.join(npm, 'from.js'))('playwright-core');
const app = pathToFileURL(path.join(npm, 'node_modules/speedscope/dist/release/index.html'));
const PATIENCE_MS = 60000;

// The way of speedscope's own command line: a script that hands the file to the page.
const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pysample-test-'));
const script = path.join(folder, 'profile.js');
const words = [path.basename(file), fs.readFileSync(file, 'base64')].map(one=>JSON.stringify(one));
fs.writeFileSync(script, `speedscope.loadFileFromBase64(${words.join(', ')})`);

const complaints = [];
const requests = [];
const browser = await chromium.launch({
  executablePath: process.env.PYSAMPLE_CHROMIUM || '/usr/bin/chromium',
  args: ['--no-sandbox', '--use-angle=swiftshader', '--enable-unsafe-swiftshader',
    '--allow-file-access-from-files'],
});
try {
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type()) && !message.text().includes('GPU stall'))
      complaints.push(message.text());
  });
  page.on('pageerror', error => complaints.push(String(error)));
  page.on('dialog', dialog => { complaints.push(dialog.message()); dialog.dismiss(); });
  page.on('request', request => {
    if (!/^(file|data|blob):/.test(request.url()))
      requests.push(request.url());
  });
  await page.goto(`${app}#localProfilePath=${script}`);
  await page.getByText('Sandwich').first().click();
  await page.getByText('Symbol Name').first().waitFor();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByText('Export').first().click(),
  ]);
  const exported = JSON.parse(fs.readFileSync(await download.path(), 'utf8'));
  process.stdout.write(JSON.stringify({ export: exported, complaints, requests }));
} finally {
  await browser.close();
  fs.rmSync(folder, { recursive: true });
}
