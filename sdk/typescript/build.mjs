// Compiles src/ twice: to ES modules in dist/esm, and to CommonJS in dist/cjs.
import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";

const compile = (...options) =>
    execFileSync(process.execPath, ["node_modules/typescript/bin/tsc", ...options], {
        stdio: "inherit",
    });

rmSync("dist", { recursive: true, force: true });
compile();
compile("--module", "commonjs", "--outDir", "dist/cjs");
writeFileSync("dist/cjs/package.json", '{ "type": "commonjs" }\n');
