import { chmod, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TextReader } from '../../../../src/features/documents/text-reader.js';
import { Launcher } from '../../../../src/primary/cli/process/launcher.js';
import { GroupContainments } from '../../../../src/primary/cli/terminate/group-containment.js';
import { cancelled } from '../../../../src/shared/errors.js';
import type { FileDocument } from '../../../../src/shared/job.js';
import type { Instance } from '../../../../src/shared/process/proc.js';
import { silentObserver } from '../../../support/agents/scripted-cli.js';
import { FakeClock } from '../../../support/basics/fake-clock.js';
import { type TemporaryFolder, temporaryFolder } from '../../../support/basics/folder.js';
import { LogBook } from '../../../support/basics/log-book.js';
import { clock, temporaryInstance } from '../../../support/processes/trees.js';

const never = new AbortController().signal;

function pdf(content: string, more: Partial<FileDocument> = {}): FileDocument {
  const data = Buffer.from(content).toString('base64');
  return { mediaType: 'application/pdf', data, digest: content.slice(0, 9), name: 'a.pdf', pages: 1, at: 0, ...more };
}

describe('The reader of PDFs', () => {
  let folder: TemporaryFolder;
  let instance: Instance & AsyncDisposable;
  let timer: FakeClock;
  let serials: { last: number };

  beforeEach(async () => {
    folder = await temporaryFolder();
    instance = await temporaryInstance();
    timer = new FakeClock();
    serials = { last: 0 };
  });
  afterEach(async () => {
    expect((await readdir(folder.path)).filter((name) => name !== 'pdftotext')).toEqual([]);
    await instance[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });

  function reader(): TextReader {
    const context = { killTree: async () => {}, clock, log: new LogBook(), observer: silentObserver };
    const folders = { runtimeDirectory: folder.path, workDirectory: folder.path, home: null };
    const settings = { instance, serials, ...folders, env: { PATH: '/usr/bin:/bin' } };
    const launcher = new Launcher(settings, new GroupContainments(instance, null, clock), context);
    return new TextReader('application/pdf', launcher, folder.path, timer);
  }

  /** Installs a pdftotext that runs these commands. */
  async function install(commands: string): Promise<void> {
    const path = join(folder.path, 'pdftotext');
    await writeFile(path, `#!/bin/sh\n${commands}\n`);
    await chmod(path, 0o755);
  }

  it('writes the whole file to the program, and remembers its text for the client', async () => {
    await install('wc -c; printf "%s\\f" "$*"');
    const pdfs = reader();
    const file = pdf('x'.repeat(1_000_000));
    const text = '1000000\n-q -enc UTF-8 -l 100 - -\n';
    expect(await pdfs.readText(file, 'key ada', never)).toBe(text);
    expect(await pdfs.readText(file, 'key ada', never)).toBe(text);
    expect(serials.last).toBe(1);
    await pdfs.readText(file, 'key bob', never);
    expect(serials.last).toBe(2);
  });

  it('forgets the oldest texts', async () => {
    await install('head -c 3000000 /dev/zero | tr "\\0" x');
    const pdfs = reader();
    for (const name of 'abcdefa') await pdfs.readText(pdf(name), 'key ada', never);
    expect(serials.last).toBe(7);
  });

  it.each([
    ['it may be broken', 'cat >/dev/null; echo some; exit 1'],
    ['it may be broken', 'head -c 1000000000 /dev/zero | tail'],
    ['it has no text, and the model CLI does not see its pages', 'cat >/dev/null; printf " \\f"'],
    ['its text is larger than 4 MB', 'exec yes'],
    ['pdftotext was ended by SIGKILL', 'kill -KILL $$'],
    ['pdftotext was ended by SIGXFSZ', 'exec cat >file'],
  ])('refuses a PDF with the reason: %s', async (reason, commands) => {
    await install(commands);
    const reading = reader().readText(pdf('x'), 'key ada', never);
    const message = `the PDF a.pdf cannot be read: ${reason}`;
    await expect(reading).rejects.toMatchObject({ code: 'cli_error', reason: 'request_refused', message });
  });

  it('ends a program that hangs with all its children, and one whose job was cut', async () => {
    await install('sleep 1000 & echo some; exec sleep 1000');
    const pdfs = reader();
    const late = pdfs.readText(pdf('x', { name: '' }), 'key ada', never).catch((error: Error) => error.message);
    while (timer.pending === 0) await new Promise(setImmediate);
    await timer.advance(20_000);
    expect(await late).toBe('the PDF cannot be read: it takes longer than 20 s');
    const controller = new AbortController();
    const cut = pdfs.readText(pdf('y'), 'key ada', controller.signal);
    const gone = cancelled('the client has disconnected');
    controller.abort(gone);
    await expect(cut).rejects.toBe(gone);
  });

  it('notices that the program is missing, and later that it was installed', async () => {
    const pdfs = reader();
    expect(pdfs.isMissing).toBe(false);
    await expect(pdfs.readText(pdf('x'), 'key ada', never)).rejects.toThrow('the package poppler-utils');
    expect(pdfs.isMissing).toBe(true);
    await install('echo some');
    await pdfs.findReader();
    expect(pdfs.isMissing).toBe(false);
    await rm(join(folder.path, 'pdftotext'));
  });

  it('searches for a missing program once in a while, not for each request', async () => {
    const pdfs = reader();
    await pdfs.findReader();
    let searches = 0;
    const { findReader } = pdfs;
    pdfs.findReader = () => {
      searches++;
      return findReader.call(pdfs);
    };
    for (let request = 0; request < 100; request++) expect(pdfs.isMissing).toBe(true);
    expect(searches).toBe(1);
    await timer.advance(5000);
    expect(pdfs.isMissing).toBe(true);
    expect(searches).toBe(2);
    await install('echo some');
    await timer.advance(5000);
    expect(pdfs.isMissing).toBe(true); // this request has caused the search
    while (pdfs.isMissing) await new Promise(setImmediate);
    expect(searches).toBe(3);
    await rm(join(folder.path, 'pdftotext'));
  });
});
