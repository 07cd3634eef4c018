// An OpenID provider with a client, two people and a key that is made at each start.
//
//     node provider.mjs FOLDER_OF_PACKAGES ISSUER SECRET REDIRECT_URI
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [packages, issuer, secret, redirectUri] = process.argv.slice(2);
const found = createRequire(pathToFileURL(`${packages}/`)).resolve("oidc-provider");
const { default: Provider } = await import(pathToFileURL(found));

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const kid = randomBytes(8).toString("hex");
const GROUPS = { ann: ["staff", "board"], bob: ["staff"] };

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "shop",
      client_secret: secret,
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token", "client_credentials"],
      id_token_signed_response_alg: "ES256",
    },
  ],
  jwks: { keys: [{ ...privateKey.export({ format: "jwk" }), kid, use: "sig", alg: "ES256" }] },
  cookies: { keys: [randomBytes(16).toString("hex")] },
  claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
  scopes: ["openid", "offline_access", "email", "groups"],
  conformIdTokenClaims: false,
  issueRefreshToken: () => true,
  pkce: { required: () => true },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id}@example.org`,
      email_verified: true,
      groups: GROUPS[id] ?? [],
    }),
  }),
  features: {
    devInteractions: { enabled: true },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      useGrantedResource: () => false,
      getResourceServerInfo: (_, resource) => ({
        scope: "api",
        audience: resource,
        accessTokenTTL: 3600,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});

provider.listen(Number(new URL(issuer).port), "127.0.0.1", () => console.log("ready"));
