/**
 * Imported first by each main file. Ends the process before anything is read or ended if this Node.js is too old. Here and in
 * the main files there is only syntax that Node.js 12 can read, because a syntax error would come before the message.
 */

/** As `engines` in package.json says. */
const oldest = '20.19.2';

const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);
const [oldestMajor = 0, oldestMinor = 0, oldestPatch = 0] = oldest.split('.').map(Number);
const isOld = major - oldestMajor || minor - oldestMinor || Number.parseInt(String(patch), 10) - oldestPatch;

if (isOld < 0) {
  process.stderr.write(`prompt-relay needs Node.js ${oldest} or newer; this is ${process.versions.node}\n`);
  process.exit(78); // as `serviceExits.config`
}
