import { type ChildProcess, type SendHandle, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { withResolvers } from '../../shared/async/promises.js';
import { inLine } from '../../shared/async/shared-calls.js';
import type { Clock } from '../../shared/clock.js';
import type { Primary } from '../http/exchange.js';

/** The number of recvmsg(2), which Perl has no name for. Where it is not known, nobody is asked. */
const recvmsg: Readonly<Record<string, number>> = {
  ...{ x64: 47, arm64: 212, arm: 297, ia32: 372, ppc64: 342, s390x: 372, riscv64: 212, loong64: 212 },
};
/** SO_PEERCRED of SOL_SOCKET, which has other numbers on a few machines that Node does not run on. */
const option = process.arch === 'ppc64' ? 21 : 17;

/**
 * Takes one connection after the other from the channel of its parent, as a descriptor beside a line of JSON, and says whose
 * it is. It ends with the channel. `vec` makes buffers of their own: Perl shares the memory of equal strings.
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
  my $uid = defined $found ? (unpack 'iII', $found)[1] : 'null';
  print qq({"cmd":"NODE_HANDLE_ACK"}\\n{"uid":$uid}\\n);
}`;

/** It answers in less than a millisecond. */
const limitMs = 2000;
/** Where there is no Perl, it is not looked for with every connection. */
const restMs = 60_000;

/** What Node keeps of an accepted connection on a Unix socket, and does not show. */
interface WithHandle {
  readonly _handle: (SendHandle & { readonly fd: number }) | null;
}

/**
 * Asks the kernel who has connected to a Unix socket. Node can't ask, but Perl can, which every Debian has: one process of
 * it is sent each connection. It is started with the first, and again where it has ended.
 */
export class PeerCredentials implements Disposable {
  readonly #clock: Clock;
  readonly #program: string;
  readonly #line = inLine();
  readonly #known = new WeakMap<Socket, Promise<number | null>>();
  #helper: ChildProcess | null = null;
  #restsUntilMs = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, program = 'perl') {
    this.#clock = clock;
    this.#program = program;
  }

  /** Null where there is no Perl, or the connection is gone. Each connection is asked for once. */
  uidOf(socket: Socket): Promise<number | null> {
    const uid = this.#known.get(socket) ?? this.#line(() => this.#ask(socket)).catch(() => null);
    this.#known.set(socket, uid);
    return uid;
  }

  /** Ends the process, which would end with this one. */
  [Symbol.dispose](): void {
    this.#helper?.kill('SIGKILL');
  }

  /** Twice, because the process may just have been killed. */
  async #ask(socket: Socket): Promise<number | null> {
    return (await this.#askOnce(socket)) ?? (await this.#askOnce(socket));
  }

  async #askOnce(socket: Socket): Promise<number | null> {
    const { _handle: handle } = socket as unknown as WithHandle;
    if (handle === null || handle.fd < 0) return null;
    const helper = this.#running();
    if (helper === null) return null;
    const { promise, resolve } = withResolvers<number | null>();
    const stopTimer = this.#clock.after(limitMs, () => helper.kill('SIGKILL'));
    const told = (message: unknown) => resolve((message as { readonly uid: number | null }).uid);
    const ended = () => {
      this.#forget(helper); // a send may fail before its end is told
      resolve(null);
    };
    helper.once('message', told).once('exit', ended).once('error', ended);
    helper.send({}, handle, (error) => error !== null && ended());
    return promise.finally(() => {
      stopTimer();
      helper.off('message', told).off('exit', ended).off('error', ended);
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

/**
 * Has the primary count each connection of a Unix socket for its user, as long as it is open: a connection costs its user
 * nothing, and the worker a descriptor.
 */
export class ConnectionLimit {
  readonly #primary: Pick<Primary, 'stream'>;
  readonly #credentials: Pick<PeerCredentials, 'uidOf'>;

  constructor(primary: Pick<Primary, 'stream'>, credentials: Pick<PeerCredentials, 'uidOf'>) {
    this.#primary = primary;
    this.#credentials = credentials;
  }

  /** Resolves with whether it may stay. Where the primary does not say so, it may. */
  async admit(socket: Socket): Promise<boolean> {
    const uid = await this.#credentials.uidOf(socket);
    if (socket.destroyed) return false;
    const held = this.#primary.stream('connection', { uid });
    socket.once('close', () => void held.return(undefined).catch(() => {}));
    const first = await held.next().catch(() => null);
    return first?.done === false ? first.value.isAllowed : true;
  }
}
