import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { features } from '../../src/features.js';
import { shellWords } from '../../src/shared/config/clis.js';
import { loadConfig } from '../../src/shared/config/config.js';
import { serviceExits } from '../../src/shared/phase.js';
import { countWords, maxNewsWords, newestSection } from '../../tools/changelog.js';
import { coreRows, featureRows } from '../../tools/configuration-table.js';
import { referenceTables, withReferenceTables } from '../../tools/reference-tables.js';
import { tableUnder } from '../support/documents/markdown.js';
import { readSources, root } from '../support/documents/sources.js';

const maxReadmeWords = 700;
const maxPictureBytes = 80_000;

function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

describe('The pages of docs', () => {
  it('have the tables that `npm run tables` writes from the code', async () => {
    const tables = await referenceTables();
    const pages = new Set(tables.map(({ page }) => page));
    expect(pages.size).toBeGreaterThan(5);
    for (const page of pages) expect(textOf(page)).toBe(withReferenceTables(tables, page, textOf(page)));
  });

  it('say of each variable that limits how long data is stored what it is for', () => {
    const names = [...coreRows(), ...featureRows()].flatMap(([name = '']) =>
      /_(?:TTL|IDLE)_SECONDS$/.test(name) ? [name] : [],
    );
    expect(names.length).toBeGreaterThan(3);
    expect(names.filter((name) => !textOf('docs/data.md').includes(name))).toEqual([]);
  });

  it('explain every error code', () => {
    expect(tableUnder('Codes', 'docs/errors.md').filter(([, , meaning = '']) => meaning.length < 20)).toEqual([]);
  });

  it('name each status that answers invalid HTTP', () => {
    const [, , meaning] = tableUnder('Codes', 'docs/errors.md').find(([code]) => code === 'validation_error') ?? [];
    for (const status of [408, 431]) expect(meaning).toContain(String(status));
  });

  it('show every exit code of the service', () => {
    const codes = tableUnder('Exit codes', 'docs/operations.md').map(([code]) => Number(code));
    expect(codes).toEqual(Object.values(serviceExits));
  });

  it('are all in the index', () => {
    const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md') && name !== 'README.md');
    const index = textOf('docs/README.md');
    expect(pages.filter((name) => !index.includes(`](${name})`))).toEqual([]);
  });

  it('show each decision in the index of decisions, by its title', () => {
    const names = readdirSync(join(root, 'docs/decisions')).filter((name) => name !== 'README.md');
    const rows = names.map((name) => `- [${textOf(`docs/decisions/${name}`).split('\n')[0]?.slice(2)}](${name})`);
    expect(textOf('docs/decisions/README.md').match(/^- .*$/gm)).toEqual(
      rows.toSorted((a, b) => a.localeCompare(b, 'en', { numeric: true })),
    );
  });

  it.each(['privacy', 'retention', 'log level', 'OIDC', 'TLS', 'backup', 'budget'])(
    'are found by a word: %s',
    (word) => {
      const rows = tableUnder('Find a word', 'docs/README.md').filter(([words = '']) =>
        words.split(', ').includes(word),
      );
      const pages = rows.flatMap(([, links = '']) =>
        [...links.matchAll(/\]\(([\w-]+\.md)/g)].map(([, page = '']) => page),
      );
      expect(pages.length).toBeGreaterThan(0);
      expect(pages.filter((page) => textOf(`docs/${page}`).toLowerCase().includes(word.toLowerCase()))).not.toEqual([]);
    },
  );

  it('have a line for each folder of the primary and the workers', () => {
    const [section = ''] = /^## Folders$.*?^## /ms.exec(textOf('docs/architecture.md')) ?? [];
    const named = [...section.matchAll(/^- \[[^\]]+\]\(\.\.\/([^)]+)\): \S/gm)].map(([, folder]) => folder);
    const folders = readSources('src').map(({ path }) => dirname(path));
    const owners = folders.filter((folder) => /^src\/(primary\b|worker(\/\w+)?$)/.test(folder));
    expect([...new Set(owners)].filter((folder) => !named.includes(folder))).toEqual([]);
    expect(new Set(named).size).toBe(named.length);
  });

  it.each(['accounts', 'console', 'data', 'operations', 'tasks'])(
    'name the buttons of the console as the console does: %s',
    (page) => {
      const files = readdirSync(join(root, 'src/console'), { recursive: true }).map(String);
      const modules = files.filter((name) => name.endsWith('.mts')).map((name) => textOf(join('src/console', name)));
      const named = textOf(`docs/${page}.md`).matchAll(/(?<!\*)\*([A-Z][\w -]+?)\*(?!\*)/g);
      const names = Array.from(named, ([, name = '']) => name);
      expect(names.filter((name) => !modules.some((module) => module.includes(name)))).toEqual([]);
      expect(names).not.toEqual([]);
    },
  );

  it('name only variables that there are', () => {
    const known = [...[...coreRows(), ...featureRows()].map(([name]) => name), 'MODEL_API_URL']; // only the command reads it
    const pages = readdirSync(join(root, 'docs')).filter((name) => name.endsWith('.md'));
    for (const page of [...pages.map((name) => `docs/${name}`), 'README.md', 'CONTRIBUTING.md']) {
      const named = [...textOf(page).matchAll(/MODEL_(?:API|CODE)_[A-Z_]*[A-Z](?![A-Z_*…])/g)].map(([name]) => name);
      expect([page, named.filter((name) => !known.includes(name))]).toEqual([page, []]);
    }
  });

  it.each(['README.md', 'docs/clis.md'])('start the service with valid commands: %s', async (page) => {
    const starts = textOf(page).match(/^MODEL_API_CLI=command .+(?= npm start$)/gm) ?? [];
    expect(starts.length).toBeGreaterThan(0);
    for (const start of starts) {
      const env = Object.fromEntries(shellWords(start).map((word) => word.split(/=(.*)/s, 2)));
      const read = () => Promise.reject(new Error('there is no file to read'));
      const { cliCommand } = await loadConfig(env, read, undefined, features);
      expect(cliCommand).not.toContain('-'); // stdin for some programs, but a part of the prompt for `llm`
    }
  });
});

it('Each picture is small and appears on a page', () => {
  const pictures = readdirSync(join(root, 'docs/pictures'));
  const shown = ['README.md', 'docs/command.md'].flatMap((page) =>
    [...textOf(page).matchAll(/!\[[^\]]+\]\((?:docs\/)?pictures\/([^)]+)\)/g)].map(([, name]) => name),
  );
  expect(shown.toSorted()).toEqual(pictures.toSorted());
  const large = pictures.filter((name) => statSync(join(root, 'docs/pictures', name)).size >= maxPictureBytes);
  expect(large).toEqual([]);
});

it('The program in the README is one that the SDK tests run', () => {
  const [, code = ''] = /^```python\n(.*?)^```/ms.exec(textOf('README.md')) ?? [];
  expect(code).toContain('base_url');
  expect(textOf('docs/sdks.md')).toContain(code);
});

it(`The README has at most ${maxReadmeWords} words`, () => {
  expect(textOf('README.md').split(/\s+/).length).toBeLessThanOrEqual(maxReadmeWords);
});

it(`The changelog has at most ${maxNewsWords} words about the newest version`, () => {
  const newest = newestSection(textOf('CHANGELOG.md'));
  expect(newest).toMatch(/^\[\d/);
  expect(countWords(newest)).toBeLessThanOrEqual(maxNewsWords);
});
