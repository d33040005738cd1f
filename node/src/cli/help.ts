/** The texts of `--help`. */

import { HOSTS } from "./hosts.js";

const FILE = `\
  FILE[:NAME]        The file, and the name of the server among its exports if
                     it has several. NAME may also be a function that makes the
                     server.
  ARGUMENT           Arguments that the file sees.

Options:
`;

const SERVED = `\
  --store FILE|URL   The store of the tasks: a SQLite file, or a URL of Redis or
                     PostgreSQL.
  --path PATH        Path of the endpoint. Default: /mcp.
  --drain SECONDS    How long running calls may continue at the end. Default:
                     10.
`;

const RUN = `\
Usage: segue-mcp run [OPTIONS] FILE[:NAME] [-- ARGUMENT...]

Serve the server of a file, over stdio or HTTP.

${FILE}\
  --http HOST:PORT   Serve HTTP there; also unix:PATH. Default: standard input
                     and output.
${SERVED}\
  --metrics-path PATH
                     Path of the metrics for Prometheus. Default: none.
  --board-path PATH  Path of the task board, a web page. Default: none.
  --tokens FILE      Require a token of this file. A line is a principal and the
                     SHA-256 of its token.
  --host NAME        Allowed name in Host; may be repeated; * = any.
  --origin ORIGIN    Web page that may call; may be repeated.
  --cert FILE        Certificate for TLS (PEM).
  --key FILE         Key of the certificate.
  --log json         Log events to standard error, as lines of JSON.
`;

const DEV = `\
Usage: segue-mcp dev [OPTIONS] FILE[:NAME] [-- ARGUMENT...]

Serve the server of a file, and reload it when the file or an import changes.

Clients stay connected, running calls end in the old process, and tasks continue
in the new one. A file that cannot be loaded leaves the old server running.
Without --store, and without a store in the file, tasks are kept until this
command ends.

${FILE}\
  --http HOST:PORT   Serve HTTP there. Default: 127.0.0.1:8000.
  --stdio            Serve standard input and output instead, for a host that
                     starts this command.
${SERVED}`;

const INSTALL = `\
Usage: segue-mcp install [OPTIONS] HOST FILE[:NAME] [-- ARGUMENT...]

Enter the server of a file into the configuration of a host.

  HOST               One of these:
${Object.keys(HOSTS)
    .map((name) => `                       ${name}\n`)
    .join("")}\
${FILE}\
  --name NAME        Name in the configuration. Default: the server's.
  --env KEY[=VALUE]  Environment variable of the server; without VALUE it is
                     copied from here. May be repeated.
  --store FILE|URL   Where the server keeps tasks.
  --project          Write the file of this directory's project.
  --config FILE      Write this file instead.
  --dry-run          Print the change and write nothing.
`;

/** The text for each command. */
export const HELP: { readonly [command: string]: string } = {
    run: RUN,
    dev: DEV,
    install: INSTALL,
};
