import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { programFault } from '../../../../../src/primary/cli/process/program-file.js';
import { type TemporaryFolder, temporaryFolder } from '../../../../support/basics/folder.js';

let folder: TemporaryFolder;

beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

async function faultOf(content: string | Buffer): Promise<string | null> {
  const path = join(folder.path, 'model');
  await writeFile(path, content, { mode: 0o755 });
  return programFault(path, async (name) => name === 'sh');
}

/** Returns the header of the current node executable, modified. */
async function nodeWith(change: (head: Buffer) => void): Promise<Buffer> {
  const head = Buffer.from((await readFile(process.execPath)).subarray(0, 4096));
  change(head);
  return head;
}

describe('A program file', () => {
  it.each([
    ['#!/no/such/interpreter\n', 'its interpreter interpreter is missing'],
    ['#! /opt/python/bin/python3 -u', 'its interpreter python3 is missing'],
    ['#!/usr/bin/env node9\n', 'its interpreter node9 is not on PATH'],
    ['#!/usr/bin/env -S A=b node9 --flag\r\n', 'its interpreter node9 is not on PATH'],
    ['#!/usr/bin/env sh\n', null],
    ['#!/bin/sh\n', null],
    ['#!\n', null],
    ['', null],
    ['echo hello', null],
    ['\x7fELF', null],
  ])('is a script whose interpreter is looked up: %j', async (content, fault) => {
    expect(await faultOf(content)).toBe(fault);
  });

  it('is a program of this machine with its loader', async () => {
    expect(await programFault(process.execPath, async () => false)).toBeNull();
    const noLoader = await nodeWith((head) => head.write('/lib9', head.indexOf('/lib'), 'latin1'));
    expect(await faultOf(noLoader)).toMatch(/^its loader ld-linux\S* is missing$/);
  });

  it('is recognized as built for another machine', async () => {
    const foreign = await nodeWith((head) => head.writeUInt16LE(process.arch === 's390x' ? 62 : 22, 18));
    // The fault is null if the kernel has an emulator registered.
    expect((await faultOf(foreign)) ?? 'it is for s390x, and this machine is x64').toMatch(
      /^it is for \S+, and this machine is \S+$/,
    );
  });

  it('is ignored if it cannot be read', async () => {
    expect(await programFault('/no/such/file', async () => true)).toBeNull();
    const path = join(folder.path, 'secret');
    await writeFile(path, '#!/no/such/interpreter');
    await chmod(path, 0o111);
    expect(await programFault(path, async () => true)).toEqual(process.getuid?.() === 0 ? expect.anything() : null);
  });
});
