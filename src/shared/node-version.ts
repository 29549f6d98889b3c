/**
 * Must be imported first by each main file. Ends the process before any other effect if this Node.js is too old. This
 * file and the main files may use only syntax of Node.js 12, because a syntax error would come before the message.
 */

/** Same version as `engines` in package.json. */
const oldest = '20.19.2';

const [major = 0, minor = 0, patch = 0] = process.versions.node.split('.').map(Number);
const [oldestMajor = 0, oldestMinor = 0, oldestPatch = 0] = oldest.split('.').map(Number);
const isOld = major - oldestMajor || minor - oldestMinor || Number.parseInt(String(patch), 10) - oldestPatch;

if (isOld < 0) {
  process.stderr.write(`prompt-relay needs Node.js ${oldest} or newer; this is ${process.versions.node}\n`);
  process.exit(78); // same as `serviceExits.config`
}
