// SPDX-License-Identifier: MIT
// Opens a file in speedscope, as its users do, and reports what it made of it:
// {"export": the profile as speedscope exports it again, "complaints": [...], "requests": [...]}
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const PATIENCE_MS = 60000;
export const flags = ['--use-angle=swiftshader', '--enable-unsafe-swiftshader',
  '--allow-file-access-from-files'];

// As speedscope's own command line does it: a script hands the file to the page.
function handOver(file, script) {
  const words = [path.basename(file), fs.readFileSync(file, 'base64')];
  fs.writeFileSync(script, `speedscope.loadFileFromBase64(${
    words.map(word => JSON.stringify(word)).join(', ')})`);
}

export async function look(browser, npm, file) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'pysample-test-'));
  try {
    return await exported(browser, npm, file, path.join(folder, 'profile.js'));
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

async function exported(browser, npm, file, script) {
  const app = pathToFileURL(path.join(npm, 'node_modules/speedscope/dist/release/index.html'));
  const complaints = [];
  const requests = [];
  handOver(file, script);
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
  const profile = JSON.parse(fs.readFileSync(await download.path(), 'utf8'));
  return { export: profile, complaints, requests };
}
