import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { inLine, withResolvers } from '../async.js';
import type { Clock } from '../clock.js';
import { sendableOf } from './connections.js';

/** The number of recvmsg(2), which Perl has no name for. On other machines no user is found. */
const recvmsg: Readonly<Record<string, number>> = {
  ...{ x64: 47, arm64: 212, arm: 297, ia32: 372, ppc64: 342, s390x: 372, riscv64: 212, loong64: 212 },
};
/** SO_PEERCRED of SOL_SOCKET, which has other numbers on a few machines that Node does not run on. */
const option = process.arch === 'ppc64' ? 21 : 17;

/**
 * Takes one connection after the other from the channel of its parent, as a descriptor beside a line of JSON, and reports
 * its process and user. It speaks Node's own protocol for handles (`NODE_HANDLE_ACK`), and ends with the channel. `vec` makes separate
 * buffers: Perl shares the memory of equal strings.
 */
const script = `
$SIG{$_} = 'IGNORE' for qw(INT TERM HUP PIPE);
open my $channel, '+<&=', 3 or exit 1;
select $channel; $| = 1;
for (;;) {
  my ($bytes, $control) = ('', ''); vec($_, 4095, 8) = 0 for $bytes, $control;
  my $part = pack 'P L!', $bytes, 4096;
  my $message = pack 'L! I x![L!] P L! P L! i x![L!]', 0, 0, $part, 1, $control, 64, 0;
  exit 0 if syscall(${recvmsg[process.arch]}, 3, $message, 0) < 1;
  my ($length, $level, $type, $fd) = unpack 'L! i i i', $control;
  next if $type != 1;
  open my $connection, '+<&=', $fd or exit 1;
  my $found = getsockopt $connection, 1, ${option};
  close $connection;
  my ($pid, $uid) = defined $found ? unpack 'iII', $found : ('null', 'null');
  print qq({"cmd":"NODE_HANDLE_ACK"}\\n{"pid":$pid,"uid":$uid}\\n);
}`;

/** Who has connected; null for what the kernel does not say. */
interface SocketPeer {
  readonly pid: number | null;
  readonly uid: number | null;
}

/** It answers in less than a millisecond. */
const limitMs = 2000;
/** If Perl is missing, it is not started again for so long. */
const restMs = 60_000;

/**
 * Asks the kernel who has connected to a Unix socket. Node can't ask, but Perl can, which every Debian has. One Perl process
 * receives each connection. The first connection starts it, and the next one after its end starts it again.
 */
export class PeerCredentials implements Disposable {
  readonly #clock: Clock;
  readonly #program: string;
  readonly #line = inLine();
  readonly #known = new WeakMap<Socket, Promise<SocketPeer | null>>();
  #helper: ChildProcess | null = null;
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, program = 'perl') {
    this.#clock = clock;
    this.#program = program;
  }

  /** Null without Perl, or if the connection is gone. */
  async uidOf(socket: Socket): Promise<number | null> {
    return (await this.#peerOf(socket))?.uid ?? null;
  }

  /** The process that has made the connection; null as above. It may be gone. */
  async pidOf(socket: Socket): Promise<number | null> {
    return (await this.#peerOf(socket))?.pid ?? null;
  }

  /** The kernel is asked once for each connection. */
  #peerOf(socket: Socket): Promise<SocketPeer | null> {
    const peer = this.#known.get(socket) ?? this.#line(() => this.#ask(socket)).catch(() => null);
    this.#known.set(socket, peer);
    return peer;
  }

  /** Ends the process, which would end with this one. */
  [Symbol.dispose](): void {
    this.#helper?.kill('SIGKILL');
  }

  /** Twice, because the process may just have been killed. */
  async #ask(socket: Socket): Promise<SocketPeer | null> {
    return (await this.#askOnce(socket)) ?? (await this.#askOnce(socket));
  }

  async #askOnce(socket: Socket): Promise<SocketPeer | null> {
    const handle = sendableOf(socket);
    const helper = handle === null ? null : this.#running();
    if (handle === null || helper === null) return null;
    const { promise, resolve } = withResolvers<SocketPeer | null>();
    const stopTimer = this.#clock.after(limitMs, () => helper.kill('SIGKILL'));
    const answered = (message: unknown) => resolve(message as SocketPeer);
    const ended = () => {
      this.#forget(helper); // a send may fail before the process reports its end
      resolve(null);
    };
    helper.once('message', answered).once('exit', ended).once('error', ended);
    helper.send({}, handle, (error) => error !== null && ended());
    return promise.finally(() => {
      stopTimer();
      helper.off('message', answered).off('exit', ended).off('error', ended);
    });
  }

  #forget(helper: ChildProcess): void {
    if (this.#helper === helper) this.#helper = null;
  }

  #running(): ChildProcess | null {
    if (this.#helper !== null) return this.#helper;
    if (!(process.arch in recvmsg) || this.#clock.monotonicMs() < this.#restsUntilMs) return null;
    const helper = spawn(this.#program, ['-e', script], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'], env: {} });
    helper.once('exit', () => this.#forget(helper));
    helper.on('error', () => {
      if (helper.pid === undefined) this.#restsUntilMs = this.#clock.monotonicMs() + restMs;
    });
    helper.unref();
    helper.channel?.unref();
    this.#helper = helper;
    return helper;
  }
}
