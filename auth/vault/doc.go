// Package vault keeps logins and other secrets on disk, encrypted.
//
//	v, err := vault.Open("", nil)
//	if err != nil {
//		return err
//	}
//	transport := &login.Transport{Server: url, Store: v}
//
// A vault is a folder with a file for each server and each secret. The files are encrypted with one
// key (AES-256-GCM), which is
//
//   - in the system's keyring: Keychain, Credential Manager, or the Secret Service of a desktop;
//   - or, without a keyring, in a file beside them that only its owner can read;
//   - or made of a passphrase, if there is one when the vault is first written to.
//
// # What this protects against
//
// With the keyring, or a passphrase, a copy of the folder (a backup, a stolen disk, a synchronised
// folder) does not reveal tokens. With the key in a file it does: then the vault is as safe as its
// folder, and encryption only hides tokens from programs that search files for them. It never
// protects from programs that the same user runs: those can do all that this one can.
//
// # Guarantees
//
//   - Files are 0600 and folders 0700 (on Windows: as the user's configuration folder is). They are
//     replaced whole, by rename after fsync: a crash leaves the old content or the new one.
//   - Only Delete and SetSecret delete. A file that cannot be decrypted is an error and stays.
//   - A file that was moved in the place of another is refused.
//   - Locks end with the process that holds them, however it ends.
//   - A keyring that does not answer within 3 seconds is an error. For a new vault it is as if there
//     were none.
package vault
