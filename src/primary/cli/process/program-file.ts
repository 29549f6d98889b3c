import { constants } from 'node:fs';
import { access, type FileHandle, open, readdir } from 'node:fs/promises';
import { basename } from 'node:path';

/** Machine numbers in an ELF header (elf(5)), with Node's names. */
const machines: Readonly<Record<number, NodeJS.Architecture>> = {
  3: 'ia32',
  8: 'mips',
  21: 'ppc64',
  22: 's390x',
  40: 'arm',
  62: 'x64',
  183: 'arm64',
  243: 'riscv64',
  258: 'loong64',
};
/** Architectures whose programs the machine also runs. */
const compatible: Readonly<Record<string, NodeJS.Architecture>> = { x64: 'ia32', arm64: 'arm' };
const loaderSegment = 3;
const headBytes = 4096;

/**
 * Returns why the kernel cannot start an executable file, such as a missing interpreter or loader, or a file for
 * another machine. Returns null if no fault is found. A shell would not report the reason, or would run the file as a
 * script. `isOnPath` tests whether a program of this name exists.
 */
export async function programFault(path: string, isOnPath: (name: string) => Promise<boolean>): Promise<string | null> {
  try {
    await using file = await open(path);
    const head = await readAt(file, 0, headBytes);
    if (head.toString('latin1', 0, 2) === '#!') return await scriptFault(head, isOnPath);
    return head.toString('latin1', 0, 4) === '\x7fELF' ? await binaryFault(file, head) : null;
  } catch {
    return null; // an executable file may be unreadable
  }
}

async function readAt(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
  return buffer.subarray(0, bytesRead);
}

async function scriptFault(head: Buffer, isOnPath: (name: string) => Promise<boolean>): Promise<string | null> {
  const [line = ''] = head.toString('utf8', 2).split('\n');
  const [interpreter = '', ...words] = line.trim().split(/\s+/);
  if (!interpreter.startsWith('/')) return null;
  if (!(await mayExecute(interpreter))) return `its interpreter ${basename(interpreter)} is missing`;
  const name = words.find((word) => !/^-|=/.test(word)); // `env -S NAME=value program`
  const isFound = basename(interpreter) !== 'env' || name === undefined || (await isOnPath(name));
  return isFound ? null : `its interpreter ${name} is not on PATH`;
}

async function binaryFault(file: FileHandle, head: Buffer): Promise<string | null> {
  const isBig = head[5] === 2;
  const is64 = head[4] === 2;
  const short = (at: number) => (isBig ? head.readUInt16BE(at) : head.readUInt16LE(at));
  const word = (at: number) => (isBig ? head.readUInt32BE(at) : head.readUInt32LE(at));
  /** Reads a file offset. The upper half of a 64-bit value is ignored, because no program file is that large. */
  const address = (at: number) => word(is64 && isBig ? at + 4 : at);
  const machine = machines[short(18)];
  if (machine === undefined) return null;
  const isForeign = machine !== process.arch && machine !== compatible[process.arch];
  if (isForeign) return (await hasEmulators()) ? null : `it is for ${machine}, and this machine is ${process.arch}`;
  const [tableAt, entryBytes, entries] = is64 ? [address(32), short(54), short(56)] : [word(28), short(42), short(44)];
  for (let at = tableAt; at < tableAt + entries * entryBytes; at += entryBytes) {
    if (word(at) !== loaderSegment) continue;
    const [offset, length] = is64 ? [address(at + 8), address(at + 32)] : [word(at + 4), word(at + 16)];
    const [loader = ''] = (await readAt(file, offset, Math.min(length, headBytes))).toString('utf8').split('\0');
    return (await mayExecute(loader)) ? null : `its loader ${basename(loader)} is missing`;
  }
  return null;
}

/** Whether the kernel may have emulators registered for programs of other machines. */
async function hasEmulators(): Promise<boolean> {
  const names = await readdir('/proc/sys/fs/binfmt_misc').catch(() => []);
  return names.some((name) => name !== 'register' && name !== 'status');
}

function mayExecute(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
