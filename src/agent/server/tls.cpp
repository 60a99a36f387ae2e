#include "agent/server/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "core/regular_file.hpp"

namespace vramtrack::agent {
namespace {

constexpr std::size_t kMostPemBytes = 256 * 1024;  ///< a chain of some dozen certificates

template <auto free>
struct Freed {
  template <class T>
  void operator()(T* pointer) const {
    free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

/// Refuses a key with a password, because there is no user to enter it.
int no_password(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Result<std::string> read_pem(const std::string& setting, const std::string& path, bool is_secret) {
  const auto file = RegularFile::open(path, Links::of_owner);
  if (!file) return fail(file.error().during(setting));
  if (!*file)
    return fail(fmt::format("{} {}: no such file; correct the path, or leave the setting empty", setting, path));
  const struct stat& info = (*file)->info();
  if (is_secret && (info.st_mode & 007) != 0)
    return fail(fmt::format("{} {} can be read by every user; run chmod 600 {}", setting, path, path));
  if (is_secret && info.st_uid != ::geteuid() && info.st_uid != 0)
    return fail(fmt::format("{} {} belongs to another user; chown it to the agent's user", setting, path));
  auto text = (*file)->read(kMostPemBytes);
  if (!text) return fail(text.error().during(setting));
  return text;
}

Bio bio_of(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Status use_certificate(SSL_CTX* context, const TlsFiles& files, std::string& warning) {
  const std::string& path = files.certificate;
  const std::string& name = files.certificate_name;
  const auto text = read_pem(name, path, false);
  if (!text) return fail(text.error());
  const Bio bio = bio_of(*text);
  const Certificate own(PEM_read_bio_X509_AUX(bio.get(), nullptr, nullptr, nullptr));
  if (!own)
    return fail(
        fmt::format("{} {}: contains no certificate in PEM (-----BEGIN CERTIFICATE-----); give the file with the "
                    "server's certificate, followed by its chain",
                    name, path));
  if (SSL_CTX_use_certificate(context, own.get()) != 1)
    return fail(fmt::format("{} {}: OpenSSL does not accept this certificate; make one with a key of 2048 bits or more",
                            name, path));
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr))
    if (SSL_CTX_add0_chain_cert(context, next) != 1) X509_free(next);
  if (X509_cmp_current_time(X509_get0_notAfter(own.get())) < 0)
    warning = fmt::format("{} {} has expired: clients will refuse it; renew it and reload", name, path);
  else if (X509_cmp_current_time(X509_get0_notBefore(own.get())) > 0)
    warning = fmt::format("{} {} is not valid yet: clients will refuse it; check this machine's clock", name, path);
  return {};
}

Status use_key(SSL_CTX* context, const TlsFiles& files) {
  const std::string& path = files.key;
  const std::string& name = files.key_name;
  const auto text = read_pem(name, path, true);
  if (!text) return fail(text.error());
  bool asked = false;
  const Key key(PEM_read_bio_PrivateKey(bio_of(*text).get(), nullptr, no_password, &asked));
  if (!key && asked)
    return fail(
        fmt::format("{} {}: is encrypted, and the server cannot ask for a password; save it without one: "
                    "(umask 077; openssl pkey -in {} -out FILE)",
                    name, path, path));
  if (!key) return fail(fmt::format("{} {}: contains no private key in PEM (-----BEGIN PRIVATE KEY-----)", name, path));
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1 || SSL_CTX_check_private_key(context) != 1)
    return fail(fmt::format(
        "{} {}: is not the key of the certificate in {}; give a certificate and the key that it was made with", name,
        path, files.certificate));
  return {};
}

}  // namespace

Result<std::shared_ptr<const TlsCertificate>> TlsCertificate::load(const TlsFiles& files) {
  const bool has_key = !files.key.empty();
  if (files.certificate.empty() || !has_key)
    return fail(fmt::format("{} is set and {} is not; set both, or neither",
                            has_key ? files.key_name : files.certificate_name,
                            has_key ? files.certificate_name : files.key_name));
  const std::shared_ptr<TlsCertificate> out(new TlsCertificate);
  out->context_ = SSL_CTX_new(TLS_server_method());
  if (out->context_ == nullptr) return fail("OpenSSL cannot be used: it fails to create a context");
  SSL_CTX* context = out->context_;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // the clients never return
  Status used = use_certificate(context, files, out->warning_);
  if (used) used = use_key(context, files);
  ERR_clear_error();
  if (!used) return fail(used.error());
  return std::shared_ptr<const TlsCertificate>(out);
}

TlsCertificate::~TlsCertificate() {
  SSL_CTX_free(context_);
}

TlsSession::TlsSession(std::shared_ptr<const TlsCertificate> certificate, int fd)
    : certificate_(std::move(certificate)), ssl_(SSL_new(certificate_->context_)) {
  broken_ = ssl_ == nullptr || SSL_set_fd(ssl_, fd) != 1;
  if (!broken_) SSL_set_accept_state(ssl_);
}

TlsSession::~TlsSession() {
  SSL_free(ssl_);
}

ssize_t TlsSession::result(int returned) {
  if (returned > 0) return returned;
  const int error = SSL_get_error(ssl_, returned);
  ERR_clear_error();
  if (error == SSL_ERROR_ZERO_RETURN) return 0;
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
    wants_ = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    errno = EAGAIN;
    return -1;
  }
  broken_ = true;
  errno = EIO;
  return -1;
}

ssize_t TlsSession::read(char* into, std::size_t size) {
  errno = EIO;
  if (broken_) return -1;
  ERR_clear_error();
  return result(SSL_read(ssl_, into, static_cast<int>(std::min<std::size_t>(size, INT_MAX))));
}

ssize_t TlsSession::write(const char* bytes, std::size_t size) {
  errno = EIO;
  if (broken_) return -1;
  ERR_clear_error();
  return result(SSL_write(ssl_, bytes, static_cast<int>(std::min<std::size_t>(size, INT_MAX))));
}

bool TlsSession::has_buffered() const {
  // Not SSL_has_pending(), which counts an incomplete record that read() cannot return.
  return !broken_ && SSL_pending(ssl_) > 0;
}

void TlsSession::close() {
  if (broken_ || SSL_in_init(ssl_) == 1) return;
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace vramtrack::agent
