import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { installPythonSdks, installSdks, type SdkPackages } from '../../support/clients/sdk-client.js';
import { snippetsFor } from '../../support/documents/snippets.js';
import { type Service, startService } from '../../support/service/service.js';

const run = promisify(execFile);
const installLimitMs = 600_000;
const snippetLimitMs = 30_000;
const documentedUrl = 'http://127.0.0.1:5051';

/** Returns the pieces of code in this language. */
function snippets(language: string): string[] {
  const code = snippetsFor('programs/sdks/snippets').filter((each) => each.language === language);
  return [...new Set(code.map((each) => each.code))]; // the README repeats one of the pieces
}

let service: Service;
let packages: SdkPackages;
let python: string | null;

beforeAll(async () => {
  packages = await installSdks();
  python = await installPythonSdks();
  service = await startService({ env: { MODEL_API_DEFAULT_MODEL: 'eliza', MODEL_API_FILES: 'memory' } });
}, installLimitMs);
afterAll(() => service.stop());

describe('The snippets of docs/sdks.md', () => {
  it('exist for each language', () => {
    expect(['sh', 'js', 'python'].map((language) => snippets(language).length)).toEqual([1, 4, 5]);
  });

  it.each(snippets('sh'))('run as a shell command without changes: %s', async (command) => {
    const { stdout } = await run('bash', ['-c', command.replaceAll(documentedUrl, service.url)]);
    expect(stdout).toContain('Nice to meet you, Ada.');
  });

  it('include the schema setting of the AI SDK', () => {
    const [code] = snippets('js').filter((each) => each.includes('generateObject'));
    expect(code).toContain('supportsStructuredOutputs: true');
  });

  it.each(snippets('js'))('works as it stands: %s', async (code) => {
    const path = join(dirname(packages.clients), `snippet-${process.pid}.mjs`); // next to the packages that it imports
    await writeFile(path, code.replaceAll(documentedUrl, service.url));
    try {
      const { stdout } = await run(packages.node, [path], { timeout: snippetLimitMs });
      expect(stdout).toContain('Nice to meet you, Ada.');
      if (code.includes('generateObject')) expect(stdout).toMatch(/\{\s+name: '[^']+',\s+age: 0\s+\}/);
    } finally {
      await rm(path);
    }
  });

  it.each(snippets('python'))('run in Python without changes: %s', async (code) => {
    if (python === null) {
      process.stderr.write('Skipped, because their packages can not be had: the snippets of Python.\n');
      return;
    }
    const env = { ...process.env, PYTHONPATH: python };
    const program = code.replaceAll(documentedUrl, service.url);
    const { stdout } = await run('python3', ['-c', program], { env, timeout: snippetLimitMs });
    expect(stdout).toContain('Nice to meet you, Ada.');
  });
});
