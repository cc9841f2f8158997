// SPDX-License-Identifier: MIT
// Decodes a gzipped pprof profile with npm's pprof-format:
//   node pprof_decode.mjs NPM_FOLDER FILE > JSON
// {"types": [[type, unit]], "samples": [{"values", "labels", "stack": [[name, file, start line,
// executing line, mapping]], the outermost first}], ...}
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { createRequire } from 'node:module';

const [npm, file] = process.argv.slice(2);
const { Profile } = createRequire(path.join(npm, 'from.js'))('pprof-format');
const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
const text = index => profile.stringTable.strings[Number(index)];
const byId = rows => new Map(rows.map(row => [Number(row.id), row]));
const locations = byId(profile.location);
const functions = byId(profile.function);
const mappings = byId(profile.mapping);

function frames(id) {
  const location = locations.get(Number(id));
  const mapping = mappings.get(Number(location.mappingId));
  return location.line.map(line => {
    const row = functions.get(Number(line.functionId));
    return [text(row.name), text(row.filename), Number(row.startLine), Number(line.line),
      mapping ? text(mapping.filename) : null];
  });
}

process.stdout.write(JSON.stringify({
  types: profile.sampleType.map(type => [text(type.type), text(type.unit)]),
  periodType: profile.periodType && [text(profile.periodType.type), text(profile.periodType.unit)],
  period: Number(profile.period),
  timeNanos: String(profile.timeNanos),
  durationNanos: String(profile.durationNanos),
  comments: profile.comment.map(text),
  defaultType: text(profile.defaultSampleType),
  systemNames: [...new Set(profile.function.map(row => text(row.systemName)))],
  samples: profile.sample.map(sample => ({
    values: sample.value.map(Number),
    labels: Object.fromEntries(sample.label.map(
      label => [text(label.key), label.str ? text(label.str) : Number(label.num)])),
    stack: [...sample.locationId].reverse().flatMap(id => frames(id).reverse()),
  })),
}));
