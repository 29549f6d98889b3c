import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { inLine, withResolvers } from '../async.js';
import type { Clock } from '../clock.js';
import { sendableOf } from './connections.js';

/** System call numbers of recvmsg(2), for which Perl has no name. On other architectures no user is determined. */
const recvmsg: Readonly<Record<string, number>> = {
  ...{ x64: 47, arm64: 212, arm: 297, ia32: 372, ppc64: 342, s390x: 372, riscv64: 212, loong64: 212 },
};
/** Number of SO_PEERCRED in SOL_SOCKET. A few architectures that Node does not support have other numbers. */
const option = process.arch === 'ppc64' ? 21 : 17;

/**
 * Perl program that receives connections from its parent, each as a descriptor with a line of JSON, and reports process
 * and user of the peer. The program speaks Node's protocol for handles (`NODE_HANDLE_ACK`), and ends when the channel
 * closes. `vec` makes separate buffers, because Perl shares the memory of equal strings.
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

/** Process and user of a peer; null if the kernel does not report them. */
interface SocketPeer {
  readonly pid: number | null;
  readonly uid: number | null;
}

/** Time limit of a query. A typical answer takes less than a millisecond. */
const limitMs = 2000;
/** Pause before the next start if Perl is missing. */
const restMs = 60_000;

/**
 * Determines which process and user have connected to a Unix socket. Node has no API for this, but Perl has, and every
 * Debian includes Perl (decision 34). A single Perl process serves all connections: 1.3 ms for each connection, and
 * 1.8 MB (bench `local-users`). The first connection starts it, and the next one after its end restarts it.
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

  /** Returns the user of the peer; null if Perl is missing or the connection is closed. */
  async uidOf(socket: Socket): Promise<number | null> {
    return (await this.#peerOf(socket))?.uid ?? null;
  }

  /**
   * Returns the process that has made the connection; null if Perl is missing or the connection is closed. The process
   * may have ended.
   */
  async pidOf(socket: Socket): Promise<number | null> {
    return (await this.#peerOf(socket))?.pid ?? null;
  }

  /** Returns the peer of a connection, which is queried only once. */
  #peerOf(socket: Socket): Promise<SocketPeer | null> {
    const peer = this.#known.get(socket) ?? this.#line(() => this.#ask(socket)).catch(() => null);
    this.#known.set(socket, peer);
    return peer;
  }

  /** Kills the Perl process, which otherwise ends with this process. */
  [Symbol.dispose](): void {
    this.#helper?.kill('SIGKILL');
  }

  /** Queries the peer. Tries twice, because the Perl process may just have been killed. */
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
