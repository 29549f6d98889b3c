import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exportOf } from '../../../../src/features/retention/export.js';
import { creationOf } from '../../../../src/features/sqlite/declared-tables.js';
import { migrations } from '../../../../src/features/sqlite/schema.js';
import { features } from '../../../../src/features.js';

const root = join(__dirname, '..', '..', '..', '..', '..');

/** What the export has of a table, or why it needs nothing of it. */
type Declared = { readonly line: string } | { readonly none: string };

const has = (line: string): Declared => ({ line });
const none = (reason: string): Declared => ({ none: reason });

/** Tables of the features have lines with their names. */
const declaredRows = Object.fromEntries(
  features.flatMap(({ tables }) => tables.map(({ name }) => [name, has(name)] as const)),
);

/** Each table of the file of SQLite. */
const sqliteTables: Readonly<Record<string, Declared>> = {
  ...{ conversations: has('conversation'), turns: has('conversation_data') },
  ...{ jobs: has('job'), job_texts: has('job_data'), idempotency: has('recorded_answer') },
  ...{ responses: has('response'), files: has('file'), file_pieces: has('file_data'), batches: has('batch') },
  ...{ usage: has('usage'), ...declaredRows },
  ...{ probes: none('tests whether the file can be written'), usage_batches: none('ids of writes') },
};

/** Each kind of keys in Redis, by the first word after the prefix. */
const redisKinds: Readonly<Record<string, Declared>> = {
  ...{ conversation: has('conversation'), turns: has('conversation_data') },
  ...{ job: has('job'), 'job-text': has('job_data'), 'job-answer': has('job_data'), answer: has('recorded_answer') },
  ...{ response: has('response'), file: has('file'), 'file-data': has('file_data'), batch: has('batch') },
  ...{ usage: has('usage'), 'usage-models': has('usage'), 'made-keys': has('made_key') },
  ...Object.fromEntries(
    ['list', 'all', 'clients', 'answers', 'responses', 'files', 'batches', 'jobs'].map((kind) => [
      kind,
      none('lists entries of other keys'),
    ]),
  ),
  'usage-batch': none('ids of writes'),
  probe: none('tests whether Redis can be written'),
  rate: none('counts requests for minutes'),
};

/** Returns the tables of the newest version of the file, with the statements that create them. */
function newestTables(): Map<string, string> {
  const declared = features.flatMap(({ tables }) => tables.map((table) => creationOf(table)));
  const statement =
    /CREATE TABLE (?:IF NOT EXISTS )?(\w+) (\([^;]*)|DROP TABLE (\w+)|ALTER TABLE (\w+) RENAME TO (\w+)/g;
  const tables = new Map<string, string>();
  for (const [, created, columns = '', dropped, from, to] of [...migrations, ...declared]
    .join(';')
    .matchAll(statement)) {
    if (created !== undefined) tables.set(created, columns);
    if (dropped !== undefined) tables.delete(dropped);
    if (from === undefined || to === undefined) continue;
    tables.set(to, tables.get(from) ?? '');
    tables.delete(from);
  }
  return tables;
}

const holdsData = (declared: Declared | undefined) => declared !== undefined && 'line' in declared;

/** Lines that the code of the export can write. Records of features have the kinds that `recordsOf` returns. */
async function exportedKinds(): Promise<Set<string>> {
  const read = (path: string) => readFile(join(root, 'src', path), 'utf8');
  const text = await read('features/retention/export.ts');
  const kinds = [...text.matchAll(/kind: '(\w+)'/g)].map(([, kind = '']) => kind);
  expect([exportOf.name, kinds.length]).toEqual(['exportOf', expect.any(Number)]);
  return new Set([...kinds, ...Object.keys(declaredRows)]);
}

describe('Data of a person', () => {
  it('in each table of SQLite is in the export, and goes with its client', async () => {
    const tables = newestTables();
    expect([...tables.keys()].toSorted()).toEqual(Object.keys(sqliteTables).toSorted());
    const kinds = await exportedKinds();
    const sql = migrations.join('\n');
    for (const [name, columns] of tables) {
      const declared = sqliteTables[name];
      if (!holdsData(declared)) continue;
      expect(kinds).toContain((declared as { line: string }).line);
      const isOfClient = /^\s*client TEXT NOT NULL/m.test(columns);
      const goesWithOwner = new RegExp(`AFTER DELETE ON \\w+ BEGIN\\s+DELETE FROM ${name} `).test(sql);
      expect([name, isOfClient || goesWithOwner]).toEqual([name, true]);
    }
  });

  it('in each kind of keys in Redis is in the export, and in the purge', async () => {
    const scripts = join(root, 'src', 'features', 'redis', 'scripts');
    const lua = await readFile(join(scripts, 'upkeep.lua'), 'utf8');
    const [, listed = ''] = /^local types = \{([^}]*)\}/m.exec(lua) ?? [];
    const known = [...listed.matchAll(/\['([\w-]+)'\]|(\w+) = /g)].map(([, quoted, plain]) => quoted ?? plain ?? '');
    const nested = ['files', 'jobs']; // have types by their second word
    expect([...known, ...nested].toSorted()).toEqual(Object.keys(redisKinds).toSorted());
    const kinds = await exportedKinds();
    // removed together with the key that has the client, by the queue of jobs, or by `removeClients`
    const elsewhere = ['turns', 'file-data', 'job', 'job-text', 'job-answer', 'made-keys'];
    for (const [kind, declared] of Object.entries(redisKinds)) {
      if (!holdsData(declared)) continue;
      const { line } = declared as { line: string };
      expect([kind, kinds.has(line) || kind === 'made-keys']).toEqual([kind, true]);
      const isPurged = new RegExp(`^function purges\\.${kind}\\(|^purges\\['${kind}'\\]`, 'm').test(lua);
      expect([kind, isPurged || elsewhere.includes(kind)]).toEqual([kind, true]);
    }
  });

  it('in the records of each feature is in the export, and in the purge', async () => {
    const folder = join(root, 'src', 'features');
    const found: string[] = [];
    const features = (await readdir(folder)).filter((name) => name !== 'stores'); // its records are those of others
    for (const feature of features) {
      const names = await readdir(join(folder, feature));
      const files = names.filter((name) => name.endsWith('.ts'));
      const texts = await Promise.all(files.map((name) => readFile(join(folder, feature, name), 'utf8')));
      const text = texts.join('\n');
      const isStored = /\bnew StoredRecords\(|\bstore\.openText\(|\brecordsPlace\(/.test(text);
      if (!isStored || /\bclientOf: null/.test(text)) continue;
      found.push(feature);
      expect([feature, /\brecordsOf[:(]/.test(text), /\bremoveClients[:(]/.test(text)]).toEqual([feature, true, true]);
    }
    expect(found).toEqual(expect.arrayContaining(['keys-api', 'lent-keys'])); // so that the search finds something
  });
});
