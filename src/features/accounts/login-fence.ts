import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Fence, FencedLogin } from '../../primary/cli/process/fence.js';
import type { Containment, ContainmentFactory } from '../../primary/cli/terminate/containment.js';

/** Place of a login. */
export interface LoginPlace {
  /** Real path of the HOME of an account, or of a file with a login of the service. */
  readonly path: string;
  readonly isOfService: boolean;
}

/** Programs of the host that confine another program with Landlock. */
export interface FenceTools {
  readonly env: string;
  readonly perl: string;
}

/** Name of the script in its messages on stderr. */
const fenceName = 'prompt-relay-fence';

/** Numbers of the system call `prctl`. The numbers of Landlock's calls are the same on all architectures. */
const prctlNumbers: Readonly<Partial<Record<string, number>>> = { x64: 157, arm64: 167, riscv64: 167, loong64: 167 };

/**
 * Script that confines itself with Landlock, and then replaces itself with the program. Landlock only knows permitted
 * files, so the script permits all entries of each folder above a hidden one, except the hidden ones. It drops the
 * capabilities that reach beyond Landlock: CAP_SYS_PTRACE, CAP_SYS_ADMIN and CAP_PERFMON. The arguments are
 * the number of `prctl`, the hidden paths, a path to permit in any case, and the program with its arguments.
 */
const script = `
my ($prctl, $hidden, $own, @program) = @ARGV;
sub fail { print STDERR "${fenceName}: $_[0]: $!\\n"; exit 126 }
delete $ENV{PERL_BADLANG};
my %hidden = map { $_ => 1 } split /\\n/, $hidden;
my %above = ('/' => 1);
for my $path (keys %hidden) { while ($path =~ s{/[^/]+$}{} and $path ne '') { $above{$path} = 1 } }
my $version = syscall 444, 0, 0, 1;
if ($version < 2) { $! = 38 if $version > 0; fail 'Landlock' }
my $all = $version < 3 ? 0x3fff : 0x7fff;
my $attributes = pack 'Q', $all;
my $rules = syscall 444, $attributes, 8, 0;
fail 'Landlock' if $rules < 0;
sub permit {
  my ($path) = @_;
  sysopen my $file, $path, 0x200000 or return;
  my $number = fileno $file;
  return if readlink("/proc/self/fd/$number") ne $path; # a link, or it was replaced by one
  my $rule = pack 'Ql', -d $file ? $all : $all & 0x4007, $number;
  syscall 445, $rules, 1, $rule, 0;
}
sub permit_entries {
  my ($folder) = @_;
  opendir my $entries, $folder or return;
  for (grep { !/^\\.\\.?$/ } readdir $entries) {
    my $path = $folder eq '/' ? "/$_" : "$folder/$_";
    next if $hidden{$path};
    if ($above{$path}) { permit_entries($path) } else { permit($path) }
  }
}
permit_entries('/');
permit($own) if $own ne '';
# With these capabilities, root could read the environment of other processes in spite of Landlock.
syscall $prctl, 24, $_, 0, 0, 0 for 19, 21, 38;
syscall($prctl, 38, 1, 0, 0, 0) == 0 or fail 'no_new_privs';
syscall(446, $rules, 0) == 0 or fail 'Landlock';
exec { $program[0] } @program or fail $program[0];
`;

type StartCommand = readonly [program: string, args: readonly string[]];

/** Returns the command that starts a program which cannot open the hidden files and folders. */
export function fenced(
  { env, perl }: FenceTools,
  hidden: readonly string[],
  ownHome: string | null,
  [program, args]: StartCommand,
): StartCommand {
  const prctl = String(prctlNumbers[process.arch] ?? -1);
  // Perl reports an unknown locale on stderr, which would appear as the model CLI's.
  const leading = ['PERL_BADLANG=0', perl, '-e', script, prctl, hidden.join('\n'), ownHome ?? ''];
  return [env, [...leading, program, ...args]];
}

/**
 * Hides the logins of all other accounts from each program, and the memory and environment of its processes. Owns where
 * the logins are.
 */
export class LoginFence implements Fence {
  readonly #tools: FenceTools;
  readonly #serviceHome: string | null;
  #places: readonly LoginPlace[] = [];

  /** `serviceHome`: real path of the HOME of the service; null if that is not set. */
  constructor(tools: FenceTools, serviceHome: string | null) {
    this.#tools = tools;
    this.#serviceHome = serviceHome;
  }

  /** Applies to programs that are started later. Returns whether the places differ from the earlier ones. */
  replacePlaces(places: readonly LoginPlace[]): boolean {
    const before = this.#places;
    this.#places = places;
    return JSON.stringify(before) !== JSON.stringify(places);
  }

  around(containments: ContainmentFactory, account: FencedLogin | null): ContainmentFactory {
    return entering(containments, (command) => this.#enter(account, command));
  }

  aroundReader(containments: ContainmentFactory): ContainmentFactory {
    return entering(containments, (command) => {
      const hidden = this.#places.map(({ path }) => path);
      return hidden.length === 0 ? command : fenced(this.#tools, hidden, null, command);
    });
  }

  /**
   * Whether a path is inside the HOME of the service. Programs with the login of the service must be able to create
   * files in this HOME, so no login inside can be hidden from them.
   */
  isInServiceHome(path: string): boolean {
    const home = this.#serviceHome;
    return home !== null && path.startsWith(home === '/' ? home : `${home}/`);
  }

  #enter(account: FencedLogin | null, command: StartCommand): StartCommand {
    const isHidden = ({ path, isOfService }: LoginPlace) =>
      account === null ? !isOfService && !this.isInServiceHome(path) : path !== account.home;
    const hidden = this.#places.filter(isHidden).map(({ path }) => path);
    return hidden.length === 0 ? command : fenced(this.#tools, hidden, account?.home ?? null, command);
  }
}

/** Returns containments whose programs start with the command that `enclose` returns. */
function entering(
  containments: ContainmentFactory,
  enclose: (command: StartCommand) => StartCommand,
): ContainmentFactory {
  return {
    get means() {
      return containments.means;
    },
    create: async (...marks) => {
      const inside = await containments.create(...marks);
      const enter: Containment['enter'] = (program, args, outlives) =>
        inside.enter(...enclose([program, args]), outlives);
      return { ...inside, enter };
    },
    close: () => containments.close(),
  };
}

/** Resolves symbolic links, also of a path whose last folders do not exist yet. */
export async function realPath(path: string): Promise<string> {
  const found = await realpath(path).catch(() => null);
  if (found !== null || dirname(path) === path) return found ?? path;
  return join(await realPath(dirname(path)), basename(path));
}
