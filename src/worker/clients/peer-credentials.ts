import { spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Clock } from '../../shared/clock.js';

/** SO_PEERCRED of SOL_SOCKET, which has other numbers on a few machines that Node does not run on. */
const option = process.arch === 'ppc64' ? 21 : 17;
const script = `open my $s, "<&=", 3 or exit 1; my $c = getsockopt($s, 1, ${option}) or exit 1; print((unpack "iII", $c)[1])`;
const limitMs = 2000;

/** What Node keeps of an accepted connection on a Unix socket, and does not show. */
interface WithHandle {
  readonly _handle: { readonly fd: number } | null;
}

/**
 * Asks the kernel who has connected to a Unix socket. Node can't ask, but Perl can, which every Debian has: a short run of
 * it inherits the connection. One runs at a time, so that many connections do not become many processes.
 */
export class PeerCredentials {
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Null where there is no Perl, or the connection is gone. */
  uidOf(socket: Socket): Promise<number | null> {
    const uid = this.#last.then(() => this.#ask(socket)).catch(() => null);
    this.#last = uid;
    return uid;
  }

  async #ask(socket: Socket): Promise<number | null> {
    // Read only now: a number that was kept could stand for another connection by the time it is used.
    const fd = (socket as unknown as WithHandle)._handle?.fd ?? -1;
    if (fd < 0) return null;
    // As a descriptor above 2: as one of the standard streams it would become blocking, here too.
    const perl = spawn('perl', ['-e', script], { stdio: ['ignore', 'pipe', 'ignore', fd], env: {} });
    const stopTimer = this.#clock.after(limitMs, () => perl.kill('SIGKILL'));
    const failed = new Promise<never>((_, reject) => perl.once('error', reject));
    const said = await Promise.race([text(perl.stdout as NonNullable<typeof perl.stdout>), failed]).finally(stopTimer);
    return /^\d+$/.test(said) ? Number(said) : null;
  }
}
